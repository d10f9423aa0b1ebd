/* The trials of one case, on one engine, in one variant, are one group: a line of the table. */
import { known as skKnown } from "../format.js";
import { isBaseline } from "../summary/summary.js";
import { matches } from "./filter.js";

/* What a group is as a whole, and how soon it is to be looked at. */
const RANK = { FAIL: 0, FLAKY: 1, ERROR: 2, RUNNING: 3, SKIP: 4, PASS: 5, WAITING: 6, NOT_HELD: 6 };

export const caseKey = (row) => [row.suite, row.case_id, row.engine, row.variant].join("\u0000");

/* How many cases those are: on each engine, with and without the skill, a case is the same. */
export const casesOf = (rows) => new Set(rows.map((row) => row.suite + "\u0000" + row.case_id)).size;

/* Groups in the order of the plan: {key, rows: all trials, status, telling: the trial to look at}. */
export function groupsOf(rows) {
  const found = new Map();
  for (const row of rows) {
    const key = caseKey(row);
    if (!found.has(key)) found.set(key, { key, rows: [] });
    found.get(key).rows.push(row);
  }
  for (const group of found.values()) {
    group.status = statusOf(group.rows);
    const first = (status) => group.rows.find((row) => row.status === status);
    group.telling = first("FAIL") || first("ERROR") || first("RUNNING") || group.rows[0];
  }
  return [...found.values()];
}

function statusOf(rows) {
  const has = new Set(rows.map((row) => row.status));
  if (has.has("FAIL")) return has.has("PASS") ? "FLAKY" : "FAIL";
  return ["ERROR", "RUNNING", "PASS", "SKIP", "WAITING"].find((status) => has.has(status)) || "NOT_HELD";
}

/* Without the skill: that is no failure of the skill, and nobody has to look at it first. */
const failsByItself = (group) => isBaseline(group.rows[0]) && RANK[group.status] <= RANK.FLAKY;

export const mean = (rows, of) => {
  const known = rows.map(of).filter(skKnown);
  return known.length ? known.reduce((sum, one) => sum + one, 0) / known.length : null;
};

const BY = {
  case: (group) => group.rows[0].case_id,
  status: (group) => (failsByItself(group) ? RANK.PASS : RANK[group.status]),
  engine: (group) => group.rows[0].engine,
  turns: (group) => mean(group.rows, (row) => row.turns.length),
  score: (group) => mean(group.rows, (row) => row.score),
  time: (group) => mean(group.rows, (row) => row.duration_ms),
  tokens: (group) => mean(group.rows, (row) => row.tokens),
  cost: (group) => mean(group.rows, (row) => row.cost_usd),
};

/* By `sort`: a column ("score", "-score"), "plan" for the order of the plan; else what failed
   comes first. What is not known comes last, ties keep the plan's order. */
export function sorted(groups, sort) {
  if (sort === "plan") return groups;
  const down = (sort || "").startsWith("-");
  const wanted = down ? sort.slice(1) : sort;
  const key = BY[Object.hasOwn(BY, wanted) ? wanted : "status"]; // an address may name anything
  return groups
    .map((group) => [key(group), group])
    .sort(([a], [b]) => {
      if (!skKnown(a) || !skKnown(b)) return skKnown(b) - skKnown(a);
      const order = typeof a === "string" ? a.localeCompare(b) : a - b;
      return down ? -order : order;
    })
    .map(([, group]) => group);
}

/* The groups of which a trial is wanted, in order, each with its wanted trials as `shown`. */
export const shownGroups = (groups, filter) =>
  sorted(
    groups
      .map((group) => ({ ...group, shown: group.rows.filter((row) => matches(row, filter)) }))
      .filter((group) => group.shown.length),
    filter.sort,
  );

/* The trials that are wanted, in the order in which the table has them. */
export const shownRows = (rows, filter) =>
  shownGroups(groupsOf(rows), filter).flatMap((group) => group.shown);

/* Where a trial went wrong first: {at: a turn's number, "end" or null, error}. */
export function firstFailure(row) {
  if (row.status !== "FAIL" && row.status !== "ERROR") return null;
  const error = row.status === "ERROR";
  const wrong = (turn) => turn.status === "failed" || turn.status === "error" || turn.ok === false;
  const at = (row.turns || []).findIndex((turn) => (error ? turn.status === "error" : wrong(turn)));
  return { at: at >= 0 ? at + 1 : row.end === false ? "end" : null, error };
}
