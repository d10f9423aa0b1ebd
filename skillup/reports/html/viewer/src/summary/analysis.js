/* What all trials say together: engines side by side, what the skill adds, flaky cases, triggering. */
import { el, fold } from "../dom.js";
import { cost, count, duration, interval, known, percent, plural, points, score, signed, tokenText } from "../format.js";
import { address, trialAddress } from "../route.js";
import { STATUS } from "../state.js";
import { isBaseline } from "./summary.js";
import { panel, table } from "./totals.js";
import { decision } from "../table/decision.js";
import { caseKey, mean } from "../table/groups.js";

function rateText(rate) {
  if (!rate || rate.rate === null || rate.rate === undefined) return "–";
  return `${percent(rate.rate)} (${rate.passed}/${rate.held})`;
}

function meter(rate) {
  if (!rate || rate.rate === null || rate.rate === undefined) return el("span", {}, "–");
  const whisker =
    rate.low !== null && rate.high !== null
      ? el("span", {
          class: "meter-interval",
          style: `left:${rate.low * 100}%;width:${(rate.high - rate.low) * 100}%`,
        })
      : null;
  return el(
    "span",
    { class: "rate", title: "interval " + interval(rate.low, rate.high) },
    el(
      "span",
      { class: "meter", "aria-hidden": "true" },
      el("span", { class: "meter-value", style: `width:${rate.rate * 100}%` }),
      whisker,
    ),
    el("span", {}, rateText(rate)),
  );
}

/* Each engine's rate and means, and, with several engines, each case by engine. */
export function engineMatrix(index) {
  const columns = (index.analysis && index.analysis.engines) || [];
  if (columns.length < 2) return null; // a single one would say the headline again
  const suites = new Set(columns.map((column) => column.suite)).size > 1;
  const overall = table(
    [suites ? "suite, engine" : "engine", "passed", "errors", "score", "turns", "tokens", "cost", "time"],
    columns.map((column) => [
      { head: (suites ? column.suite + ", " : "") + column.engine },
      { node: meter(column.rate) },
      { number: count(column.error) },
      { number: score(column.score) },
      { number: score(column.turns) },
      { number: tokenText(column.tokens) },
      { number: cost(column.cost_usd) },
      { number: duration(column.duration_ms) },
    ]),
    "Engines side by side; turns, tokens, cost and time are per trial",
  );
  return panel("Side by side", "engines", overall, caseMatrix(index));
}

function caseMatrix(index) {
  const engines = [...new Set(index.rows.map((row) => row.engine))];
  if (engines.length < 2) return null;
  const cases = new Map();
  for (const row of index.rows) {
    if (row.variant === "without_skill") continue;
    const key = row.suite + "\u0000" + row.case_id;
    if (!cases.has(key)) cases.set(key, { row, by: new Map() });
    const by = cases.get(key).by;
    by.set(row.engine, [...(by.get(row.engine) || []), row]);
  }
  return fold(
    { class: "matrix" },
    `Each case by engine (${cases.size})`,
    () =>
      table(
        ["case", ...engines],
        [...cases.values()].map(({ row, by }) => [
          { head: el("span", {}, row.case_id) },
          ...engines.map((engine) => ({
            node: el(
              "span",
              { class: "dots" },
              (by.get(engine) || []).map((one) =>
                el(
                  "a",
                  {
                    href: trialAddress(one.n),
                    class: "dot status-" + one.status,
                    title: one.reason || "",
                    "aria-label": `${row.case_id}, ${engine}, trial ${one.trial}: ${STATUS[one.status].word}`,
                  },
                  STATUS[one.status].sign,
                ),
              ),
            ),
          })),
        ]),
        "Each case's trials by engine",
      ),
    cases.size <= 12,
  );
}

function differenceText(difference, format) {
  if (!difference) return { text: "–" };
  const sign = difference.difference > 0 ? "+" : difference.difference < 0 ? "−" : "±";
  return {
    number: sign + format(Math.abs(difference.difference)),
    title: `${format(difference.with_skill)} with, ${format(difference.without_skill)} without`,
  };
}

/* Of a suite, over those cases that its uplift is over: so their difference is the uplift. */
function meanRate(all, suite, side) {
  const cases = all.filter(
    (one) =>
      one.case_id && one.suite === suite.suite && one.engine === suite.engine && known(one.uplift),
  );
  return mean(cases, (one) => one[side].rate);
}

/* With against without the skill. */
export function upliftTable(index) {
  const all = (index.analysis && index.analysis.uplift) || [];
  if (!all.length) return null;
  const several = (key) => new Set(all.map((one) => one[key])).size > 1;
  const place = (one) => [several("suite") ? one.suite : null, several("engine") ? one.engine : null];
  const line = (one) => [
    {
      head: one.case_id
        ? [one.case_id, ...place(one)].filter(Boolean).join(", ")
        : `${one.suite}, ${one.engine} (${one.cases > 1 ? "mean of " : ""}${plural(one.cases, "case")})`,
    },
    { number: one.case_id ? rateText(one.with_skill) : percent(meanRate(all, one, "with_skill")) },
    { number: one.case_id ? rateText(one.without_skill) : percent(meanRate(all, one, "without_skill")) },
    { number: points(one.uplift), class: "strong" },
    {
      number:
        one.low === null
          ? "–"
          : `${signed(Math.round(one.low * 100))} to ${signed(Math.round(one.high * 100))}`,
    },
    {
      number:
        one.p === null || one.p === undefined
          ? "–"
          : one.p < 0.001
            ? "<0.001"
            : String(Math.round(one.p * 1000) / 1000),
    },
    differenceText(one.turns, score),
    differenceText(one.tokens, tokenText),
    differenceText(one.cost_usd, cost),
    differenceText(one.duration_ms, duration),
  ];
  const heads = ["", "with", "without", "uplift", "interval", "p", "turns", "tokens", "cost", "time"];
  const cases = all.filter((one) => one.case_id);
  return panel(
    "What the skill adds",
    "uplift",
    table(heads, all.filter((one) => !one.case_id).map(line), "Pass rates with and without the skill"),
    cases.length
      ? fold({}, `By case (${cases.length})`, () =>
          table(heads, cases.map(line), "The same, by case"),
        )
      : null,
  );
}

/* Cases whose trials disagree; not how the agent wavers without the skill. */
export function flakyList(index) {
  const all = (index.analysis && index.analysis.cases) || [];
  const flaky = all.filter((one) => one.flaky && !isBaseline(one));
  if (!flaky.length) return null;
  return panel(
    `Flaky (${flaky.length})`,
    "flaky",
    el(
      "ul",
      { class: "plain" },
      flaky.map((one) =>
        el(
          "li",
          {},
          caseLink(index, one),
          " ",
          el(
            "span",
            { class: "aside" },
            `${one.engine}: `,
          ),
          `${one.rate.passed} of ${one.rate.held} passed`,
          el("span", { class: "aside" }, ` (${interval(one.rate.low, one.rate.high)})`),
          atK(one),
          decision(one, "; "),
        ),
      ),
    ),
  );
}

/* The chances of a few trials, as the terminal has them: of half of those held, as of all of them
   a flaky case has one pass surely and a full pass never. */
function atK(one) {
  const k = Math.min(5, Math.max(2, Math.floor(one.rate.held / 2)));
  const found = k < one.rate.held && (one.at_k || []).find((item) => item.k === k);
  if (!found) return null;
  return el(
    "span",
    { class: "aside" },
    `; pass@${k} ${percent(found.pass_at_k)}, pass^${k} ${percent(found.pass_hat_k)}`,
  );
}

/* To a case's line in the table, unfolded and not hidden by the filter. */
export function caseLink(index, one) {
  const row = firstOf(index.rows).get(caseKey(one));
  const none = { q: null, deep: null, status: null, tag: null, engine: null, variant: null, suite: null };
  return row
    ? el("a", { href: address("", { ...none, go: String(row.n) }) }, one.case_id)
    : el("span", {}, one.case_id);
}

/* Case → the first of its rows; made once, as hundreds of cases may be linked. */
const firsts = new WeakMap();
function firstOf(rows) {
  if (!firsts.has(rows))
    firsts.set(rows, new Map([...rows].reverse().map((row) => [caseKey(row), row])));
  return firsts.get(rows);
}

/* Whether skills are used when they should be, and only then. */
export function triggering(index) {
  const all = (index.analysis && index.analysis.triggering) || [];
  if (!all.length) return null;
  return panel(
    "Triggering",
    "triggering",
    table(
      ["skill", "precision", "recall", "F1", "used rightly", "missed", "used wrongly", "rightly not used"],
      all.map((one) => [
        { head: `${one.skill}, ${one.engine}` },
        { number: percent(one.precision) },
        { number: percent(one.recall) },
        { number: score(one.f1) },
        { number: count(one.used_rightly) },
        { number: count(one.not_used_wrongly) },
        { number: count(one.used_wrongly) },
        { number: count(one.not_used_rightly) },
      ]),
      "Whether each skill was used when it should be",
    ),
  );
}
