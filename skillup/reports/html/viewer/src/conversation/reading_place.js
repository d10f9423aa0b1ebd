/* From one conversation to another, and keeping the reader's place on the way. */
import { page } from "../state.js";
import { isBaseline } from "../summary/summary.js";
import { caseKey } from "../table/groups.js";

const caseOf = (row) => JSON.stringify([row.suite, row.case_id]);

/* The rows in the order of the table, as filtered. */
const ordered = () =>
  page.order || (page.index || { rows: [] }).rows;

/* The next and previous line of the table (a case on an engine) with a trial that failed or met an
   error, in its order: the first such trial of it. `n`: the trial that is shown, or null. */
export function failingNeighbours(n) {
  const cases = new Map();
  for (const row of ordered()) {
    const key = caseKey(row);
    if (!cases.has(key)) cases.set(key, null);
    const bad = row.status === "ERROR" || (row.status === "FAIL" && !isBaseline(row));
    if (!cases.get(key) && bad) cases.set(key, row);
  }
  const here = page.index.rows.find((row) => row.n === n);
  const keys = [...cases.keys()];
  const at = here ? keys.indexOf(caseKey(here)) : -1;
  const first = (list) => list.map((key) => cases.get(key)).find(Boolean) || null;
  return { next: first(keys.slice(at + 1)), previous: at < 0 ? null : first(keys.slice(0, at).reverse()) };
}

/* All trials of a row's case: its engines, with and without the skill; not those not needed. */
export const trialsOf = (row) =>
  page.index.rows.filter(
    (one) => caseOf(one) === caseOf(row) && (one.status !== "NOT_NEEDED" || one === row),
  );

/* What a trial is called among those. */
export function trialName(row, among) {
  const engines = new Set(among.map((one) => one.engine)).size > 1;
  const variants = new Set(among.map((one) => one.variant)).size > 1;
  return [
    engines ? row.engine : null,
    variants ? (row.variant === "without_skill" ? "without" : "with") : null,
    "trial " + row.trial,
  ]
    .filter(Boolean)
    .join(", ");
}

/* The trial of the same case that is `by` further; null at the ends. */
export function nextTrial(n, by) {
  const row = page.index.rows.find((one) => one.n === n);
  if (!row) return null;
  const all = trialsOf(row);
  return all[all.indexOf(row) + by] || null;
}

/* The turn that is being read, which has begun at the top of the window, and how far from there it
   did: {case, turn, top, scroll}. */
export function readingPlace() {
  const row = page.index && page.index.rows.find((one) => one.n === (page.shownTrial || null));
  if (!row) return null;
  const turns = [...document.querySelectorAll("main .conversation > .turn")];
  const begun = turns.filter((turn) => turn.getBoundingClientRect().top < 120);
  const turn = scrollY > 0 ? begun[begun.length - 1] : null; // none: the head is being read
  const top = turn ? turn.getBoundingClientRect().top : 0;
  return { case: caseOf(row), turn: turn ? turn.dataset.turn : null, top, scroll: scrollY };
}

/* Puts the reader there in the conversation that is shown now; false if that is another case. */
export function returnTo(place, n) {
  const row = page.index && page.index.rows.find((one) => one.n === n);
  if (!place || !row || caseOf(row) !== place.case) return false;
  const turn =
    place.turn &&
    document.querySelector(`main .conversation > .turn[data-turn="${Number(place.turn)}"]`);
  if (turn) scrollTo(0, scrollY + turn.getBoundingClientRect().top - place.top);
  else scrollTo(0, place.turn ? document.documentElement.scrollHeight : place.scroll);
  return true;
}
