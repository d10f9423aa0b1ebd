/* The summary: one honest sentence first, then what it rests on. */
import { besideChoice, sides } from "../compare/sides.js";
import { el } from "../dom.js";
import { count, interval as skInterval, percent, plural } from "../format.js";
import { address } from "../route.js";
import { STATUS } from "../state.js";
import { engineMatrix, flakyList, triggering, upliftTable } from "./analysis.js";
import { trend } from "./charts.js";
import { firstFailures } from "./first_failures.js";
import { totals as skTotals } from "./totals.js";
import { deciding } from "../table/decision.js";
import { mean as skMean } from "../table/groups.js";
import { statusSign } from "../table/rows.js";
import { caseTable } from "../table/table.js";

/* Counts of rows by status, of one variant. */
export function tally(rows) {
  const counts = { PASS: 0, FAIL: 0, ERROR: 0, SKIP: 0, NOT_HELD: 0, NOT_NEEDED: 0, RUNNING: 0, WAITING: 0 };
  for (const row of rows) counts[row.status] = (counts[row.status] || 0) + 1;
  return counts;
}

/* Wilson's interval of a rate; docs/statistics.md has the arithmetic. */
export function wilson(passed, held, confidence) {
  if (!held) return null;
  const z = quantile((1 + confidence) / 2);
  const rate = passed / held;
  const middle = rate + (z * z) / (2 * held);
  const half = z * Math.sqrt((rate * (1 - rate)) / held + (z * z) / (4 * held * held));
  const whole = 1 + (z * z) / held;
  return [Math.max(0, (middle - half) / whole), Math.min(1, (middle + half) / whole)];
}

/* The standard normal's quantile, by halving; its distribution by Simpson's rule. */
function quantile(share) {
  const density = (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  function below(x) {
    let sum = density(0) + density(x);
    for (let step = 1; step < 200; step++) sum += density((x * step) / 200) * (step % 2 ? 4 : 2);
    return 0.5 + (sum * x) / 600;
  }
  let [low, high] = [0, 8];
  for (let round = 0; round < 50; round++) {
    const middle = (low + high) / 2;
    if (below(middle) < share) low = middle;
    else high = middle;
  }
  return low;
}

/* ", 95 % interval 69–90 %". Trials of one case are not as many cases: where there are several the
   analysis has an interval over cases, and the cases' mean stands with it: "; mean of 8 cases 42 %,
   95 % interval 13–88 %". Without an analysis there is no interval. */
function intervalOf(index, rows, counts, confidence) {
  const level = `, ${Math.round(confidence * 100)}\u202f% interval `;
  const verdicts = rows.filter(hasVerdict);
  const { cases } = meanOfCases(verdicts);
  if (cases === verdicts.length) {
    const [low, high] = wilson(counts.PASS, verdicts.length, confidence);
    return level + skInterval(low, high);
  }
  const overall = index.analysis && index.analysis.overall;
  const mean = meanText(verdicts);
  if (!overall || overall.held !== verdicts.length) return mean;
  return mean + level + skInterval(overall.low, overall.high);
}

const hasVerdict = (row) => row.status === "PASS" || row.status === "FAIL";

/* Each case counts the same, however many verdicts it has; on several engines it is one case. */
function meanOfCases(verdicts) {
  const by = new Map();
  for (const row of verdicts) {
    const key = row.suite + "\u0000" + row.case_id;
    by.set(key, [...(by.get(key) || []), row.status === "PASS" ? 1 : 0]);
  }
  return { cases: by.size, rate: skMean([...by.values()], (held) => skMean(held, (one) => one)) };
}

/* Where trials are more than cases: a rate over trials is none over cases. */
function meanText(verdicts) {
  const { cases, rate } = meanOfCases(verdicts);
  return cases < 2 || cases === verdicts.length ? "" : `; mean of ${count(cases)} cases ${percent(rate)}`;
}

/* A trial without the skill that fails is no failure of the skill: those are counted apart. */
export const isBaseline = (row) => row.variant === "without_skill";

/* "Without the skill 27 of 48 passed (56 %); 1 error." Nothing where there is no baseline. */
export function baselineSentence(index) {
  const rows = index.rows.filter(isBaseline);
  if (!rows.length) return null;
  const counts = tally(rows);
  const held = counts.PASS + counts.FAIL;
  const parts = [
    held
      ? `${count(counts.PASS)} of ${count(held)} passed (${percent(counts.PASS / held)}${meanText(rows.filter(hasVerdict))})`
      : "no trial has a verdict",
  ];
  if (counts.ERROR) parts.push(plural(counts.ERROR, "error"));
  if (counts.SKIP) parts.push(`${count(counts.SKIP)} skipped`);
  if (counts.RUNNING) parts.push(`${count(counts.RUNNING)} running`);
  parts.push(...unheld(counts));
  return el("p", { id: "baseline" }, `Without the skill ${parts.join("; ")}.`);
}

/* Those that may come yet, and those that never were held. */
function unheld(counts) {
  return [
    counts.WAITING ? `${count(counts.WAITING)} waiting` : null,
    counts.NOT_HELD ? `${count(counts.NOT_HELD)} not run` : null,
  ].filter(Boolean);
}

/* "41 of 50 trials passed (82 %, 95 % interval 69–90 %); 2 ended in an error (no verdict)" */
export function sentence(index) {
  const baseline = index.rows.some(isBaseline);
  const rows = index.rows.filter((row) => !isBaseline(row));
  const counts = tally(rows);
  const held = counts.PASS + counts.FAIL;
  const confidence = (index.analysis && index.analysis.confidence) || 0.95;
  const parts = [];
  if (held) {
    parts.push(
      `${count(counts.PASS)} of ${plural(held, "trial")} passed` +
        (baseline ? " with the skill" : "") +
        ` (${percent(counts.PASS / held)}${intervalOf(index, rows, counts, confidence)})`,
    );
  } else parts.push("No trial has a verdict");
  if (counts.ERROR) parts.push(`${count(counts.ERROR)} ended in an error (no verdict)`);
  if (counts.SKIP) parts.push(`${count(counts.SKIP)} skipped`);
  if (counts.RUNNING) parts.push(`${count(counts.RUNNING)} running`);
  parts.push(...unheld(counts));
  if ((index.not_needed || []).length) parts.push(`${count(index.not_needed.length)} not needed`);
  return parts.join("; ") + ".";
}

/* The first page: what came of it, then the cases, then what it rests on. */
export function firstPage(index) {
  const parts = [
    flakyList(index),
    firstFailures(index),
    trend(index),
    engineMatrix(index),
    triggering(index),
  ].filter(Boolean);
  const totals = skTotals(index);
  return el(
    "div",
    { class: "first-page" },
    el(
      "section",
      { class: "summary", "aria-labelledby": "headline" },
      el("h1", { id: "headline" }, sentence(index)),
      baselineSentence(index),
      bar(index),
      deciding(index),
      stopped(index.run),
      (index.warnings || []).map((text) => el("p", { class: "notice warning" }, text)),
      jumps([...parts, totals].filter(Boolean)),
    ),
    el("div", { class: "differences" }, upliftTable(index), besideChoice(index), sides(index)),
    caseTable(index),
    totals,
    parts.length ? el("div", { class: "summary-parts" }, parts) : null,
  );
}

/* To the parts below the table. */
function jumps(parts) {
  return el(
    "nav",
    { class: "jumps", "aria-label": "Parts of this page" },
    parts.map((part) =>
      el("a", { href: address("", { go: part.id }), class: "to-" + part.id }, part.querySelector("h2").textContent),
    ),
  );
}

function stopped(run) {
  if (run.stopped) {
    return el(
      "p",
      { class: "notice", id: "stopped" },
      el("strong", {}, "Stopped early: "),
      run.stopped.message,
      " ",
      el("span", { class: "aside" }, `(${run.stopped.kind})`),
    );
  }
  if (!run.finished && !run.running) {
    return el(
      "p",
      { class: "notice", id: "stopped" },
      "This run did not finish. ",
      el("code", {}, `skillup run --resume ${run.path || run.run_id}`),
      " completes it.",
    );
  }
  return null;
}

/* The shares of the statuses as one bar, and below it what each part is; a click leads to these. */
export function bar(index) {
  const rows = index.rows.filter((row) => !isBaseline(row));
  const counts = tally(rows);
  const parts = Object.entries(counts).filter(([, number]) => number > 0);
  if (!parts.length) return null;
  const held = parts.filter(([status]) => status !== "NOT_NEEDED");
  const variant = rows.length < index.rows.length ? "with_skill" : null;
  const to = (status) => address("", { status, q: null, variant, go: "cases" });
  return el(
    "div",
    { class: "bar-whole", role: "group", "aria-label": variant ? "Trials with the skill by status" : "Trials by status" },
    el(
      "div",
      { class: "bar", "aria-hidden": "true" },
      held.map(([status, number]) =>
        el("a", {
          class: "bar-part status-" + status,
          style: `flex-grow:${number}`,
          href: to(status),
          tabindex: "-1",
          title: `${number} ${STATUS[status].word}`,
          "aria-label": `${number} ${STATUS[status].word}`,
        }),
      ),
    ),
    el(
      "div",
      { class: "bar-legend" },
      parts.map(([status, number]) =>
        el(
          "a",
          {
            class: "bar-name status-" + status,
            href: to(status),
            "aria-label": `${number} ${STATUS[status].word}: show only these`,
          },
          statusSign(status),
          ` ${count(number)} ${STATUS[status].word}`,
        ),
      ),
    ),
  );
}
