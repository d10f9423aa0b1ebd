/* Where the data comes from. A report carries it: the index as JSON, each trial as gzip in
   base64, unpacked when it is looked at. Under `skillup view` the server gives it, by relative
   addresses. */
import type { CheckData, Index, OfRecord, OfTurn, Row, SimulatedEnd } from "../dist/types";
import type { ToolResult, TrialGrade, TurnError, WorkspaceChanges } from "../dist/types";
import type { Mark } from "./dom";
import { known } from "./text/format";
import { page, view, hasRun } from "./state";
import type { Range } from "./text/text";

/* A conversation, as detail.py makes it. */
export interface Link { name: string; href: string }
export interface TrialError extends TurnError { advice: string }
export interface Evidence {
  turn: number;
  follow_up: number | null;
  in: "response" | "item" | "changes";
  item: number | null;
  part: "text" | "result" | "arguments" | null;
  argument: string | null;
  start: number;
  end: number;
  more?: Evidence[];
}
export type Evident = Range & Pick<Evidence, "in" | "item" | "part" | "argument">;
export interface Check extends CheckData {
  children: Check[];
  evidence: Evidence | null;
  differs?: string; // from its nearest line, in words
  key?: string | null; // of its evidence
  moot?: "not evaluated" | "skips the rest" | null;
}
/* What an agent said or did: `text` of a message, the others of a call (`type`: "tool"). */
export interface Item {
  type: "message" | "reasoning" | "question" | "notice" | "tool";
  agent?: string | null;
  text?: string;
  outcome?: string; // of a question: what was answered
  id?: string | null;
  name?: string;
  kind?: string;
  arguments?: Record<string, unknown>;
  result?: ToolResult | null;
}
export interface Capture {
  variable: string;
  value: string;
  used_in: number[];
  where: { start: number; end: number; follow_up: number | null } | null;
}
/* Only named where it is too large, or is no picture. */
export interface Picture {
  path: string;
  size: number;
  type?: string;
  width?: number;
  height?: number;
  data?: string | null;
}
export interface Changes extends WorkspaceChanges { images: Picture[] }
/* A turn or a follow-up (`follow_up`: its place). */
export interface Turn extends OfTurn {
  follow_up: number | null;
  content: string;
  content_parts: { text: string; variable: string | null }[];
  response: string;
  items: Item[];
  captures: Capture[];
  changes: Changes | null;
  checks: Check[];
  error: TrialError | null;
  follow_ups: Turn[];
  raw: Link[];
  score: number | null;
  passed_on?: string | null;
  label?: string;
  passed?: boolean;
  unjudged?: boolean;
  given_up?: boolean; // of an attempt that was not counted
  places?: Evident[]; // evidence of checks
}
export interface FamilyTrial extends Pick<Row, "job" | "n" | "case_id" | "trial" | "status"> {
  forks_at: number;
  parent_n: number | null;
}
/* An earlier one, that was not counted. */
export interface Attempt {
  attempt: number;
  error: TrialError | null;
  reason: string;
  turns: Turn[];
}
/* Of one that has not begun, or cannot be shown, only why. */
export interface Trial extends OfRecord {
  n: number;
  job: string;
  grade: TrialGrade | null;
  title: string | null;
  attempts: Attempt[];
  system: string | null;
  history: { role: string; content: string; items: Item[] }[];
  turns: Turn[];
  conversation_checks: Check[];
  error: TrialError | null;
  simulated_end: SimulatedEnd | null;
  family: { of: string; tree: FamilyTrial[] } | null;
  raw: Link[];
  live?: string;
  waiting?: string;
  problem?: string;
}
/* A run in the list of `skillup view`. */
export interface RunLine {
  id: string;
  run_id: string | null;
  status: string;
  started_at: string | null;
  suites: string[];
  engines: string[];
  counts: Record<string, number> | null;
  done: number;
  planned: number;
  duration_ms: number | null;
  cost_usd: number | null;
  problem: string | null;
}

const embedded = (id: string) => document.getElementById(id)?.textContent ?? null;

async function unpack(base64: string): Promise<Trial> {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as Trial;
}

async function get<T>(address: string): Promise<T> {
  const headers = { Accept: "application/json" };
  const answer = await fetch(address, { cache: "no-store", headers });
  if (answer.ok) return (await answer.json()) as T;
  const told = (await answer.json().catch(() => ({}))) as { error?: string; hint?: string };
  const message = [told.error, told.hint].filter(Boolean).join("; ");
  throw new Error(message || `${answer.status} ${answer.statusText}`);
}

export function embeddedIndex(): Index | null {
  const text = embedded("sk-index");
  return text === null ? null : (JSON.parse(text) as Index);
}

export const runAddress = (runId: string) => "api/runs/" + encodeURIComponent(runId);
export const fetchStamp = async (address: string) =>
  (await get<{ stamp: string }>(address)).stamp;
export const fetchRuns = async () => (await get<{ runs: RunLine[] }>("api/runs")).runs;
export const fetchIndex = (runId: string) =>
  get<Index>(`${runAddress(runId)}/index.json${beside()}`);

/* The other run that is shown beside, if the address names one. */
function beside(): string {
  const { against } = page.filter;
  return against && page.mode === "view" ? "?against=" + encodeURIComponent(against) : "";
}

async function readTrial(n: number): Promise<Trial> {
  const text = embedded("sk-trial-" + n);
  if (text !== null) return unpack(text);
  if (page.runId) return get(`${runAddress(page.runId)}/trials/${n}.json${beside()}`);
  throw new Error("This report holds no conversation for this trial.");
}

/* A trial's conversation, from the page or from the server. */
export const trial = async (n: number) => prepared(await readTrial(n));

/* What checks that failed come to, before anything is drawn: of a turn that did not run they say
   nothing, and a gate that skips the rest of its case is no failure. And each check with evidence
   gets a key; each turn and follow-up, the places of the evidence that is in it. */
export function prepared(detail: Trial): Trial {
  const status = detail.grade?.status;
  const turns = new Map((detail.turns || []).map((turn) => [turn.turn_number, turn]));
  let keys = 0;
  const settle = (checks: Check[] | undefined, why: (check: Check) => Check["moot"]) => {
    for (const check of checks || []) {
      const place = check.evidence;
      check.key = null;
      for (const evidence of place ? [place, ...(place.more || [])] : []) {
        const turn = turns.get(evidence.turn);
        const step = known(evidence.follow_up) ? turn?.follow_ups[evidence.follow_up] : turn;
        if (!step) continue;
        check.key ||= `check-${++keys}`;
        (step.places ||= []).push({
          ...evidence,
          marks: [check.key],
          class: `evidence evidence-${check.passed ? "passed" : "failed"}`,
          title: (check.passed ? "✓ " : "✗ ") + check.name,
        });
      }
      settle(check.children, why);
      const unread = check.evaluated === false ? "not evaluated" : why(check);
      check.moot = check.passed || check.error ? null : unread;
    }
  };
  for (const turn of detail.turns || []) {
    turn.unjudged = !detail.grade;
    for (const step of [turn, ...(turn.follow_ups || [])]) {
      const ran = step.status !== "error" && step.status !== "skipped";
      settle(step.checks, (check) => {
        if (!ran) return "not evaluated";
        return status === "SKIP" && check.role === "post_condition" ? "skips the rest" : null;
      });
    }
  }
  for (const attempt of detail.attempts || [])
    for (const turn of attempt.turns) Object.assign(turn, { unjudged: true, given_up: true });
  settle(detail.conversation_checks, (check) => {
    const moot = status === "ERROR" || status === "SKIP";
    return moot && check.assertable === false ? "not evaluated" : null;
  });
  return detail;
}

/* Checks in words: "2 of 3 failed", "not evaluated". */
export function checksText(checks: Check[]): string {
  const failed = checks.filter((check) => !check.passed && !check.moot).length;
  if (failed) return `${failed} of ${checks.length} failed`;
  if (checks.some((check) => check.moot === "skips the rest")) return "failed: the rest is skipped";
  const moot = checks.filter((check) => check.moot).length;
  if (moot === checks.length) return "not evaluated";
  if (moot) return `${moot} of ${checks.length} not evaluated`;
  return checks.length > 1 ? `all ${checks.length} passed` : "passed";
}

const MARKS: Record<string, Mark> = {
  completed: { sign: "●", word: "ok", status: "PASS" },
  failed: { sign: "✗", word: "failed", status: "FAIL" },
  skipped: { sign: "○", word: "skipped", status: "SKIP" },
  error: { sign: "!", word: "error", status: "ERROR" },
};

/* A turn's sign: "failed" too where it ran and its checks failed. */
export function rowMark(turn: { status: string; ok?: boolean | null; unjudged?: boolean }): Mark {
  if (turn.status === "completed" && turn.unjudged)
    return { sign: "·", word: "not judged yet", status: "NOT_RUN" };
  const status = turn.status === "completed" && turn.ok === false ? "failed" : turn.status;
  return MARKS[status] || { sign: "·", word: status, status: "NOT_RUN" };
}

/* The same: by its gate and by its own checks, or those of the follow-up that it passed on. */
export function turnMark(turn: Turn): Mark {
  const checks = turn.checks || [];
  const saved = turn.passed_on && turn.follow_ups.find((one) => one.label === turn.passed_on);
  const gates = checks.filter((check) => check.role === "post_condition");
  const deciding = saved ? [...gates, ...saved.checks] : checks;
  if (turn.status === "completed" && turn.given_up)
    return { sign: "·", word: "completed", status: "NOT_RUN" };
  if (turn.status === "completed" && deciding.some((check) => check.moot === "skips the rest"))
    return { sign: "○", word: "skips the rest", status: "SKIP" };
  return rowMark({ ...turn, ok: deciding.every((check) => check.passed || check.moot) });
}

/* The part that decided: a turn's number, "end", or null where nothing failed. */
export function failedPart(detail: Trial): number | "end" | null {
  const named = Number(/^turn (\d{1,6}): /.exec(detail.grade?.reason || "")?.[1]);
  if (detail.turns.some((turn) => turn.turn_number === named)) return named;
  const bad = detail.turns.find((turn) => /FAIL|ERROR/.test(turnMark(turn).status));
  if (bad) return bad.turn_number;
  return (detail.conversation_checks || []).some((check) => !check.passed) ? "end" : null;
}

/* Searching the words of the conversations themselves: each is unpacked once, and its words
   kept. */
const AT_ONCE = 6;
const MOST = 300000; // characters kept of one conversation
const UNSAID = new Set("checks notes raw usage captures content_parts images error".split(" "));
const texts = new Map<string, string>();
const textKey = (n: number) => `${page.runId}/${n}`;

/* What was said and done in a trial, in small letters; "" until it has been unpacked. */
export const conversationText = (n: number) => texts.get(textKey(n)) || "";

function wordsOf({ system, history, turns }: Trial): string {
  const said = (key: string, value: unknown) => (UNSAID.has(key) ? undefined : value);
  return JSON.stringify([system, history, turns], said).slice(0, MOST).toLowerCase();
}

/* Unpacks what is not known yet, and draws the page when it is. */
export async function readConversations(): Promise<void> {
  const { index, runId, reading } = page;
  const missing = (index?.rows || []).filter((row) => hasRun(row) && !texts.has(textKey(row.n)));
  if (!missing.length || reading) return;
  page.reading = true;
  async function worker() {
    for (let row: Row | undefined; page.runId === runId && (row = missing.shift());) {
      // One that cannot be read has no words.
      const detail = await readTrial(row.n).catch(() => null);
      texts.set(`${runId}/${row.n}`, detail ? wordsOf(detail) : "");
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  page.reading = false;
  view.update();
}
