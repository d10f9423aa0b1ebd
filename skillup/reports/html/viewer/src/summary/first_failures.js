/* Where conversations first fail: a bar for each turn, of the trials whose first failed turn it is. */
import { el, fold } from "../dom.js";
import { count, plural } from "../format.js";
import { caseLink } from "./analysis.js";
import { panel, table } from "./totals.js";
import { caseKey, firstFailure } from "../table/groups.js";

const COLOURED = 6;

export function firstFailures(index) {
  const baseline = index.rows.some((row) => row.variant === "without_skill");
  const rows = index.rows.filter((row) => !baseline || row.variant === "with_skill");
  const verdicts = rows.filter((row) => row.status === "PASS" || row.status === "FAIL");
  const longest = Math.max(0, ...verdicts.map((row) => row.turns.length));
  const found = verdicts
    .filter((row) => row.status === "FAIL")
    .map((row) => ({ row, at: firstFailure(row).at }))
    .filter(({ at }) => at !== null);
  if (found.length < 2 || longest < 2) return null;
  const places = Array.from({ length: longest }, (_, at) => at + 1);
  if (found.some(({ at }) => at === "end")) places.push("end");
  const cases = casesOf(found);
  const most = Math.max(...places.map((place) => sum(cases, place)));
  const engines = new Set(rows.map((row) => row.engine)).size > 1;
  const name = (one) => one.row.case_id + (engines ? ", " + one.row.engine : "");
  return panel(
    "Where conversations first fail",
    "failures",
    el(
      "p",
      { class: "axis" },
      `trials that first failed there, of ${count(verdicts.length)} with a verdict` +
        (baseline ? " and the skill" : ""),
    ),
    el(
      "div",
      {
        class: "turn-bars",
        role: "img",
        "aria-label": "Trials that first failed at each turn; the table below has the numbers",
      },
      places.map((place) => line(place, cases, most, name)),
    ),
    legend(cases, name),
    fold({ class: "chart-table" }, "As a table", () =>
      table(
        ["case", ...places.map(placeName)],
        cases.map((one) => [
          { head: caseLink(index, one.row) },
          ...places.map((place) => ({ number: count(one.at.get(place) || 0) })),
        ]),
        "Trials that first failed at each turn, by case",
      ),
    ),
  );
}

const placeName = (place) => (place === "end" ? "end" : "turn " + place);
const sum = (cases, place) => cases.reduce((total, one) => total + (one.at.get(place) || 0), 0);

/* [{row, at: place → trials, total}], those that failed most first. */
function casesOf(found) {
  const cases = new Map();
  for (const { row, at } of found) {
    const key = caseKey(row);
    if (!cases.has(key)) cases.set(key, { row, at: new Map(), total: 0 });
    const one = cases.get(key);
    one.at.set(at, (one.at.get(at) || 0) + 1);
    one.total += 1;
  }
  return [...cases.values()].sort((a, b) => b.total - a.total);
}

function line(place, cases, most, name) {
  const total = sum(cases, place);
  const parts = cases
    .map((one, at) => ({ one, at, number: one.at.get(place) || 0 }))
    .filter(({ number }) => number);
  return el(
    "div",
    { class: "turn-bar" },
    el("span", { class: "turn-bar-name" }, placeName(place)),
    el(
      "span",
      { class: "turn-bar-track" },
      parts.map(({ one, at, number }) =>
        el("span", {
          class: "turn-bar-part part-" + Math.min(at, COLOURED),
          style: `width:${(number / most) * 100}%`,
          title: `${name(one)}: ${plural(number, "trial")}`,
        }),
      ),
      el("span", { class: "turn-bar-count" }, total ? count(total) : ""),
    ),
  );
}

function legend(cases, name) {
  const key = (at) => el("span", { class: "part-key part-" + at, "aria-hidden": "true" });
  const others = cases.length - COLOURED;
  return el(
    "ul",
    { class: "legend" },
    cases.slice(0, COLOURED).map((one, at) => el("li", {}, key(at), name(one))),
    others > 0 ? el("li", {}, key(COLOURED), plural(others, "other case")) : null,
  );
}
