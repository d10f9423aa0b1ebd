/* Charts, drawn by Chartist (vendor/). Every chart has a table that says the same in words. */
import * as Chartist from "chartist";
import { el, fold } from "../dom.js";
import { known, percent, plural, time as skTime } from "../format.js";
import { caseLink } from "./analysis.js";
import { panel, table as skTable } from "./totals.js";
import { mean } from "../table/groups.js";

const percentAxis = { low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1] };

/* `series`: [{name, values: [0..1 or null], partial: the same, of runs that are not whole}];
   `axes`: what stands on the y and the x axis. */
function lineChart(labels, series, label, axes) {
  const target = el("div", { class: "chart", role: "img", "aria-label": label });
  const sparse = Math.ceil(labels.length / (labels.some((one) => one.length > 5) ? 4 : 8));
  const lines = series.flatMap((one, at) => [
    { className: "chart-line-" + (at % 6), data: one.values },
    { className: "chart-partial chart-line-" + (at % 6), data: one.partial },
  ]);
  requestAnimationFrame(() => {
    if (!target.isConnected) return;
    const chart = new Chartist.LineChart(
      target,
      { labels, series: lines },
      {
        axisY: {
          type: Chartist.FixedScaleAxis,
          ...percentAxis,
          offset: 52,
          labelInterpolationFnc: (value) => Math.round(value * 100) + " %",
        },
        axisX: {
          offset: 22,
          showGrid: false,
          labelInterpolationFnc: (value, at) => (at % sparse ? null : value),
        },
        lineSmooth: Chartist.Interpolation.none({ fillHoles: true }),
        showPoint: true,
        fullWidth: true,
        height: 170,
        chartPadding: { top: 14, right: 40, bottom: 0, left: 0 },
      },
    );
    chart.on("draw", (part) => {
      if (part.type !== "point" || part.seriesIndex % 2 === 0) return;
      const ring = { cx: part.x, cy: part.y, r: 3.5 };
      part.element.replace(new Chartist.Svg("circle", ring, "ct-ring"));
    });
    // Drawn for the window; with this it can be shrunk to a sheet of paper.
    chart.on("created", ({ svg }) => {
      const box = svg.getNode().getBoundingClientRect();
      svg.attr({ viewBox: `0 0 ${box.width} ${box.height}` });
    });
  });
  const legend =
    series.length > 1
      ? el(
          "ul",
          { class: "legend" },
          series.map((one, at) =>
            el(
              "li",
              {},
              el("span", { class: "legend-key legend-" + (at % 6), "aria-hidden": "true" }),
              one.name,
            ),
          ),
        )
      : null;
  return [
    el("p", { class: "axis" }, axes.y),
    target,
    el("p", { class: "axis axis-x" }, axes.x),
    legend,
  ];
}

/* Days; where several runs were on one day, times, with the day if there are several days. */
function runLabels(times) {
  const texts = times.map((time) => skTime(time));
  const days = texts.map((text) => text.slice(5, 10));
  const different = new Set(days).size;
  if (different === days.length) return days;
  return texts.map((text) => (different === 1 ? text.slice(11) : text.slice(5)));
}

/* How past runs and this one fared: of each engine, the mean of its cases' pass rates. A run that
   has a verdict of fewer than nine in ten of the cases is drawn beside the line, as a ring. */
export function trend(index) {
  const history = index.history || [];
  const runs = new Map();
  for (const one of history) for (const mark of one.marks) runs.set(mark.run_id, mark.started_at);
  if (runs.size < 2) return null;
  const order = [...runs].sort((a, b) => (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0)).map(([id]) => id);
  const lines = new Map();
  for (const one of history) {
    const name = one.engine + (one.variant === "without_skill" ? ", without the skill" : "");
    if (!lines.has(name)) lines.set(name, new Map());
    for (const mark of one.marks) {
      if (!mark.held) continue;
      const rates = lines.get(name).get(mark.run_id) || [];
      lines.get(name).set(mark.run_id, [...rates, mark.passed / mark.held]);
    }
  }
  const series = [...lines].map(([name, by]) => lineOf(name, by, order));
  const rings = series.some((one) => one.partial.some(known));
  const numbers = (one, at) => {
    const rate = known(one.values[at]) ? one.values[at] : one.partial[at];
    const only = known(one.partial[at]) ? ` (${one.held[at]} of ${one.cases} cases)` : "";
    return { number: percent(rate) + only };
  };
  return panel(
    "Over past runs",
    "trend",
    lineChart(
      runLabels(order.map((id) => runs.get(id))),
      series,
      `Mean pass rate of the cases over ${order.length} runs; the table below has the numbers`,
      { y: "mean pass rate of the cases", x: "runs, oldest to newest" },
    ),
    rings
      ? el(
          "p",
          { class: "aside" },
          el("span", { class: "ring-key", "aria-hidden": "true" }),
          "a run with verdicts of only some of the cases",
        )
      : null,
    failingSince(index, history),
    fold({ class: "chart-table" }, "As a table", () =>
      skTable(
        ["run", ...series.map((one) => one.name)],
        order.map((id, at) => [
          { head: `${skTime(runs.get(id))} ${id}` },
          ...series.map((one) => numbers(one, at)),
        ]),
        "Mean pass rate by run",
      ),
    ),
    fold({ class: "chart-table" }, `Each case (${history.length})`, () => caseMarks(history, order)),
  );
}

/* `by`: run → the rates of its cases. */
function lineOf(name, by, order) {
  const held = order.map((id) => (by.get(id) || []).length);
  const cases = Math.max(...held);
  const rates = order.map((id) => mean(by.get(id) || [], (rate) => rate));
  const whole = (at) => held[at] >= 0.9 * cases;
  return {
    name,
    held,
    cases,
    values: rates.map((rate, at) => (whole(at) ? rate : null)),
    partial: rates.map((rate, at) => (whole(at) ? null : rate)),
  };
}

function failingSince(index, history) {
  const failing = history.filter(
    (one) => one.failing_since && (one.failing_since.runs > 1 || one.failing_since.before),
  );
  const passes = ([passed, held]) => `${passed} of ${held}`;
  // Cases held several times in a run tell how often they passed before and since.
  const said = (since) =>
    since.before
      ? `fell at ${skTime(since.started_at)}: ${passes(since.before)} passed before, ${passes(since.since)} since.`
      : `has failed in the last ${plural(since.runs, "run")}, since ${skTime(since.started_at)}.`;
  if (!failing.length) return null;
  return el(
    "ul",
    { class: "plain" },
    failing.map((one) =>
      el(
        "li",
        {},
        caseLink(index, one),
        ` (${one.engine}) ${said(one.failing_since)}`,
      ),
    ),
  );
}

function markOf(mark) {
  if (!mark) return ["–", "not held", "NOT_HELD"];
  if (!mark.held) return mark.error ? ["!", "ended in an error", "ERROR"] : ["○", "no verdict", "SKIP"];
  const says = `${mark.passed} of ${mark.held} passed` + (mark.error ? `, ${mark.error} in an error` : "");
  if (mark.passed === mark.held) return ["●", says, "PASS"];
  return mark.passed ? ["◐", says, "FAIL"] : ["✗", says, "FAIL"];
}

function caseMarks(history, order) {
  return skTable(
    ["case", "engine", "oldest to newest"],
    history.map((one) => {
      const by = new Map(one.marks.map((mark) => [mark.run_id, mark]));
      return [
        { head: one.case_id },
        { text: one.engine + (one.variant === "without_skill" ? ", without" : "") },
        {
          node: el(
            "span",
            { class: "dots" },
            order.map((id) => {
              const [sign, words, status] = markOf(by.get(id));
              const mark = by.get(id);
              return el(
                "span",
                {
                  class: "dot status-" + status,
                  role: "img",
                  title: `${mark ? skTime(mark.started_at) : id}: ${words}`,
                  "aria-label": words,
                },
                sign,
              );
            }),
          ),
        },
      ];
    }),
    "Each case's past runs",
  );
}
