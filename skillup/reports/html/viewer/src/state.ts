/* What the whole page shares: what is shown now, addresses, and which trials belong together. */
import type { Index, Row } from "../dist/types";
import type { RunLine, Trial } from "./data";
import { known, mean } from "./text/format";

/* What each status is called, and the sign that says it without colour. */
export const STATUS: Record<string, { word: string; sign: string }> = {
  PASS: { word: "passed", sign: "●" },
  FAIL: { word: "failed", sign: "✗" },
  ERROR: { word: "error", sign: "!" },
  FLAKY: { word: "flaky", sign: "◐" }, // of a case, never of a trial
  SKIP: { word: "skipped", sign: "○" },
  NOT_RUN: { word: "not run", sign: "–" },
  NOT_NEEDED: { word: "not needed", sign: "·" }, // saved by --until-decided
  RUNNING: { word: "running", sign: "◌" },
  WAITING: { word: "waiting", sign: "–" }, // not begun, while the run goes on
};

const FILTERS = "q deep status tag engine variant suite sort against".split(" ");
export type Filter = Record<string, string | undefined>;
export const NO_FILTER = Object.fromEntries(FILTERS.slice(0, 7).map((key) => [key, null]));
export type Key = [keys: string, what: string, act: () => void];

export interface Route {
  runId: string | null;
  page: "table" | "trial" | "compare" | "pair";
  n: number | null;
  turn: number | "end" | null;
  other: number | null;
  query: URLSearchParams;
}

export const page = {
  mode: "report" as "report" | "view",
  index: null as Index | null,
  runs: null as RunLine[] | null,
  runId: null as string | null,
  against: null as string | null,
  route: parseRoute(""),
  filter: {} as Filter,
  details: [] as Array<Trial | null>, // of the trials that are shown
  problem: null as string | null,
  tableAddress: null as string | null,
  all: false, // lines of the table, instead of the first
  unfolded: new Set<string>(), // cases whose trials are shown
  reading: false, // conversations, to search in them
  help: false,
  printed: null as Map<number, Trial | null> | null, // conversations that go on paper
};

export const view = { update: () => {} }; // draws the page anew; set by the app

export const FIRST = 100; // lines of a long table

/* The address says what is shown: a link reproduces the view.

     #/                                  the summary and the table (the list of runs, under view)
     #/?q=…&status=FAIL,ERROR&sort=-score  the same, filtered and sorted
     #/trial/12?…                        a conversation; the filter is kept
     #/trial/12/turn/3                   the same, at turn 3; turn/end: at the checks of all of it
     #/trial/12/with/15                  beside another trial of the same case; …/turn/3 as above
     #/pair/7                            both conversations of a pair of two runs
     #/run/ID/…                          any of these, in a run, under `skillup view` */
export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decode);
  const route: Route = {
    ...{ runId: null, page: "table", n: null, turn: null, other: null },
    query: new URLSearchParams(query),
  };
  if (parts[0] === "run" && parts[1] !== undefined) route.runId = parts.splice(0, 2)[1]!;
  if (parts[0] === "trial" || parts[0] === "pair") {
    route.page = parts[0];
    route.n = whole(parts[1]);
    if (parts[0] === "trial" && parts[2] === "with") {
      route.page = "compare";
      route.other = whole(parts[3]);
      parts.splice(2, 2);
    }
    if (parts[2] === "turn") route.turn = parts[3] === "end" ? "end" : whole(parts[3]);
  }
  return route;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const whole = (text = "") => (/^\d{1,9}$/.test(text) ? Number(text) : null);

export function filterOf(query: URLSearchParams): Filter {
  const found: Filter = {};
  for (const key of FILTERS) if (query.get(key)) found[key] = query.get(key)!;
  return found;
}

/* The address of a page with the filter that is in use; `changes` outrank it, null drops a key. */
export function address(path: string, changes: Record<string, string | null> = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries({ ...page.filter, ...changes }))
    if (value) query.set(key, value);
  const run = page.runId && page.mode === "view" ? `/run/${encodeURIComponent(page.runId)}` : "";
  const text = query.toString().replace(/%2C/g, ",");
  return `#${run}/${path}${text ? `?${text}` : ""}`;
}

type Part = number | string | null;
const turnPath = (turn?: Part) => (turn ? `/turn/${turn}` : "");
export const trialAddress = (n: Part, turn?: Part) => address(`trial/${n}${turnPath(turn)}`);
export const compareAddress = (n: Part, other: Part, turn?: Part) =>
  address(`trial/${n}/with/${other}${turnPath(turn)}`);
export const go = (to: string) => void (location.hash = to);
export const back = () => page.tableAddress || address("");

/* Changes the filter without a new entry in the browser's history for every key stroke. */
export function setFilter(changes: Record<string, string | null>): void {
  for (const [key, value] of Object.entries(changes)) {
    if (value) page.filter[key] = value;
    else delete page.filter[key];
  }
  history.replaceState(null, "", address(""));
  page.tableAddress = location.hash;
  view.update();
}

export const listOf = (text = "") => text.split(",").filter(Boolean);

/* Which trials are shown. `q`: words that must all be found in the row; "-word" must not be.
   With `deep` they are looked for in the conversation, too, whose words `said` has. Not in what
   is said of all rows alike, such as "all checks passed". Trials that were not needed are shown
   on request. */
function haystack(row: Row): string {
  const reason = hasFailed(row) ? row.reason : null;
  const parts = [row.case_id, row.title, row.suite, row.engine, reason, row.error_kind];
  return [...parts, ...(row.tags || [])].filter(Boolean).join("\n").toLowerCase();
}

export function matches(row: Row, filter: Filter, said: (n: number) => string = () => ""): boolean {
  const statuses = listOf(filter.status);
  const wanted = statuses.includes(row.status);
  if (row.status === "NOT_NEEDED" && !wanted) return false;
  if (statuses.length && !wanted && !(row.flaky && statuses.includes("FLAKY"))) return false;
  if (!listOf(filter.tag).every((tag) => (row.tags || []).includes(tag))) return false;
  for (const key of ["engine", "variant", "suite"] as const)
    if (filter[key] && row[key] !== filter[key]) return false;
  const words = (filter.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  const spoken = words.length && filter.deep ? said(row.n) : "";
  const has = (word: string) => haystack(row).includes(word) || spoken.includes(word);
  return words.every((word) =>
    word.length > 1 && word[0] === "-" ? !has(word.slice(1)) : has(word),
  );
}

/* The trials of one case are one group: a line of the table. On several engines, or with and without
   the skill, it has a group for each of these sides. */
export interface Group {
  key: string;
  at: number; // in the order of the plan
  rows: Row[];
  shown: Row[]; // those that match
  status: string;
  telling: Row; // the trial to look at
  sides: Group[];
}

/* How soon a group is to be looked at. */
const RANK: Record<string, number> = {
  ...{ FAIL: 0, FLAKY: 1, ERROR: 2, RUNNING: 3, SKIP: 4, PASS: 5, WAITING: 6, NOT_RUN: 6 },
};

type OfCase = { suite: string; case_id: string; engine?: string; variant?: string };
const SEPARATOR = "\u0000";
export const caseKey = (row: OfCase) =>
  [row.suite, row.case_id, row.engine, row.variant].join(SEPARATOR);
export const caseOf = (row: OfCase) => row.suite + SEPARATOR + row.case_id;

/* How many cases those are: on each engine, with and without the skill, a case is the same. */
export const casesOf = (rows: OfCase[]) => new Set(rows.map(caseOf)).size;

/* A trial without the skill that fails is no failure of the skill: those are counted apart. */
export const isBaseline = (row: { variant: string }) => row.variant === "without_skill";
export const isBad = (row: Row) =>
  row.status === "ERROR" || (row.status === "FAIL" && !isBaseline(row));
export const hasRun = (row: Row) => !/^(NOT_RUN|NOT_NEEDED|RUNNING|WAITING)$/.test(row.status);
export const hasFailed = (row: Row) => row.status === "FAIL" || row.status === "ERROR";
export const hasVerdict = (row: Row) => row.status === "PASS" || row.status === "FAIL";

const gathered = (rows: Row[], keyOf: (row: Row) => string) => {
  const found = new Map<string, Row[]>();
  for (const row of rows) found.set(keyOf(row), [...(found.get(keyOf(row)) || []), row]);
  return [...found];
};
const sideKey = (row: Row) => row.engine + SEPARATOR + row.variant;

/* Each engine and variant, if there are several, with what it is called. */
export function sidesOf(rows: Row[]): Array<{ key: string; title: string }> {
  const all = gathered(rows, sideKey);
  const firsts = all.map(([, [row]]) => row!);
  if (all.length < 2) return [];
  return all.map(([key, [row]]) => ({ key, title: sideName(row!, firsts) }));
}
export const sideOf = (group: Group, key: string) =>
  group.sides.find((one) => sideKey(one.rows[0]!) === key);

export function groupsOf(rows: Row[]): Group[] {
  if (!sidesOf(rows).length) return gathered(rows, caseKey).map(groupOf);
  return gathered(rows, caseOf).map(([key, all], at) => {
    const sides = gathered(all, caseKey).map(groupOf);
    const trials = sides.flatMap((side) => side.rows);
    const { status, telling } = sorted(sides)[0]!; // the worst
    return { key, at, rows: trials, shown: trials, status, telling, sides };
  });
}

function groupOf([key, rows]: [string, Row[]], at: number): Group {
  const first = (status: string) => rows.find((row) => row.status === status);
  const order = ["ERROR", "RUNNING", "PASS", "SKIP", "WAITING"];
  const status = first("FAIL")
    ? first("PASS")
      ? "FLAKY"
      : "FAIL"
    : order.find(first) || "NOT_RUN";
  const telling = first("FAIL") || first("ERROR") || first("RUNNING") || rows[0]!;
  return { key, at, rows, shown: rows, status, telling, sides: [] };
}

const BY: Record<string, (group: Group) => string | number | null> = {
  case: (group) => group.rows[0]!.case_id,
  // Without the skill: that is no failure of the skill, and nobody has to look at it first.
  status: (group) =>
    RANK[isBaseline(group.telling) && RANK[group.status]! <= 1 ? "PASS" : group.status]!,
  engine: (group) => group.rows[0]!.engine,
  turns: (group) => mean(group.rows, (row) => row.turns.length),
  score: (group) => mean(group.rows, (row) => row.score),
  time: (group) => mean(group.rows, (row) => row.duration_ms),
  tokens: (group) => mean(group.rows, (row) => row.tokens),
  cost: (group) => mean(group.rows, (row) => row.cost_usd),
};

/* By `sort`: a column ("score", "-score"); else what failed comes first. What is not known comes
   last, ties keep the plan's order. */
export function sorted(groups: Group[], sort = ""): Group[] {
  const down = sort.startsWith("-");
  const wanted = down ? sort.slice(1) : sort;
  const key = BY[Object.hasOwn(BY, wanted) ? wanted : "status"]!; // an address may name anything
  return groups
    .map((group) => [key(group), group] as const)
    .sort(([a], [b]) => {
      if (!known(a) || !known(b)) return Number(known(b)) - Number(known(a));
      const order = typeof a === "string" ? a.localeCompare(String(b)) : a - Number(b);
      return down ? -order : order;
    })
    .map(([, group]) => group);
}

/* Those of the engine and of the variant that are wanted. */
export const ofSides = (rows: Row[], { engine, variant }: Filter) =>
  rows.filter((row) => matches(row, { engine, variant, status: row.status }));

/* The groups of which a trial is wanted, in order, each with its wanted trials as `shown`. */
export const shownGroups = (rows: Row[], filter: Filter, said?: (n: number) => string): Group[] =>
  sorted(
    groupsOf(ofSides(rows, filter))
      .map((group) => ({ ...group, shown: group.rows.filter((row) => matches(row, filter, said)) }))
      .filter((group) => group.shown.length),
    filter.sort,
  );

/* Where a trial went wrong first: {at: a turn's number, "end" or null, error}. */
export function firstFailure(row: Row): { at: number | "end" | null; error: boolean } | null {
  if (!hasFailed(row)) return null;
  const error = row.status === "ERROR";
  const at = row.turns.findIndex(
    (turn) =>
      turn.status === "error" || (!error && (turn.status === "failed" || turn.ok === false)),
  );
  return { at: at >= 0 ? at + 1 : row.end === false ? "end" : null, error };
}

export const rowOf = (n: number | null): Row | null =>
  page.index?.rows.find((row) => row.n === n) || null;

/* The next and previous line of the table (a case on an engine) with a trial that failed or met an
   error, in its order: the first such trial of it. `n`: the trial that is shown, or null. */
export function failingNeighbours(order: Row[], here: Row | null) {
  const cases = new Map<string, Row | null>();
  for (const row of order) {
    const key = caseKey(row);
    cases.set(key, cases.get(key) || (isBad(row) ? row : null));
  }
  const keys = [...cases.keys()];
  const at = here ? keys.indexOf(caseKey(here)) : -1;
  const first = (list: string[]) => list.map((key) => cases.get(key)).find(Boolean) || null;
  const before = keys.slice(0, Math.max(0, at));
  return { next: first(keys.slice(at + 1)), previous: first(before.reverse()) };
}

/* All trials of a row's case: its engines, with and without the skill; not those not needed. */
export const trialsOf = (row: Row): Row[] =>
  (page.index?.rows || []).filter(
    (one) => caseOf(one) === caseOf(row) && (one.status !== "NOT_NEEDED" || one === row),
  );

/* What its engine and variant are called among those of others, and the trial itself. */
function sideName(row: Row, among: Row[]): string {
  const several = (key: "engine" | "variant") => new Set(among.map((one) => one[key])).size > 1;
  const variant = isBaseline(row) ? "without" : "with";
  return [several("engine") && row.engine, several("variant") && variant].filter(Boolean).join(", ");
}
export const trialName = (row: Row, among: Row[]) =>
  [sideName(row, among), `trial ${row.trial}`].filter(Boolean).join(", ");

/* The other trials of a case that ran, those that tell most first: with the same engine, with
   another verdict (one that passed beside one that failed), then the nearest. */
export function comparable(n: number | null): Row[] {
  const row = rowOf(n);
  if (!row || !hasRun(row)) return [];
  const rank = (one: Row) =>
    (one.engine === row.engine && one.variant === row.variant ? 0 : 3e9) +
    (one.status === "PASS" && row.status !== "PASS" ? 0 : one.status !== row.status ? 1e9 : 2e9) +
    Math.abs(one.n - row.n);
  return trialsOf(row)
    .filter((one) => one !== row && hasRun(one))
    .sort((a, b) => rank(a) - rank(b));
}
