/* Charts, drawn by Chartist (vendor/). Every chart has a table that says the same in words. */
(function () {
  const percentAxis = { low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1] };

  /* `series`: [{name, values: [0..1 or null]}]; `labels` are the page's own (numbers, dates). */
  function lineChart(labels, series, label, { step } = {}) {
    const target = SK.el("div", { class: "chart", role: "img", "aria-label": label });
    const sparse = Math.ceil(labels.length / 8);
    requestAnimationFrame(() => {
      if (!target.isConnected) return;
      const chart = new Chartist.LineChart(
        target,
        {
          labels,
          series: series.map((one, at) => ({ className: "chart-line-" + (at % 6), data: one.values })),
        },
        {
          axisY: {
            type: Chartist.FixedScaleAxis,
            ...percentAxis,
            offset: 44,
            labelInterpolationFnc: (value) => Math.round(value * 100) + " %",
          },
          axisX: {
            offset: 22,
            showGrid: false,
            labelInterpolationFnc: (value, at) => (at % sparse ? null : value),
          },
          lineSmooth: step ? Chartist.Interpolation.step({ postpone: true }) : false,
          showPoint: labels.length <= 40,
          fullWidth: true,
          height: 170,
          chartPadding: { top: 8, right: 40, bottom: 0, left: 0 },
        },
      );
      // Drawn for the window; with this it can be shrunk to a sheet of paper.
      chart.on("created", ({ svg }) => {
        const box = svg.getNode().getBoundingClientRect();
        svg.attr({ viewBox: `0 0 ${box.width} ${box.height}` });
      });
    });
    const legend =
      series.length > 1
        ? SK.el(
            "ul",
            { class: "legend" },
            series.map((one, at) =>
              SK.el(
                "li",
                {},
                SK.el("span", { class: "legend-key legend-" + (at % 6), "aria-hidden": "true" }),
                one.name,
              ),
            ),
          )
        : null;
    return [target, legend];
  }

  SK.charts = function (index) {
    const parts = [trend(index), curves(index)].filter(Boolean);
    return parts.length ? SK.el("div", { class: "charts" }, parts) : null;
  };

  /* How past runs and this one fared: of each engine, the mean of its cases' pass rates. */
  function trend(index) {
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
    const mean = (rates) => (rates ? rates.reduce((sum, one) => sum + one, 0) / rates.length : null);
    const series = [...lines].map(([name, by]) => ({ name, values: order.map((id) => mean(by.get(id))) }));
    return SK.panel(
      "Over past runs",
      "trend",
      lineChart(
        order.map((id) => SK.time(runs.get(id)).slice(5, 10)),
        series,
        `Mean pass rate of the cases over ${order.length} runs; the table below has the numbers`,
      ),
      failingSince(history),
      SK.fold({ class: "chart-table" }, "As a table", () =>
        SK.table(
          ["run", ...series.map((one) => one.name)],
          order.map((id, at) => [
            { head: `${SK.time(runs.get(id))} ${id}` },
            ...series.map((one) => ({ number: SK.percent(one.values[at]) })),
          ]),
          "Mean pass rate by run",
        ),
      ),
      SK.fold({ class: "chart-table" }, `Each case (${history.length})`, () => caseMarks(history, order)),
    );
  }

  function failingSince(history) {
    const failing = history.filter((one) => one.failing_since && one.failing_since.runs > 1);
    if (!failing.length) return null;
    return SK.el(
      "ul",
      { class: "plain" },
      failing.map((one) =>
        SK.el(
          "li",
          {},
          SK.el("a", { href: SK.address("", { q: one.case_id, status: null }) }, one.case_id),
          ` (${one.engine}) has failed in the last ${SK.plural(one.failing_since.runs, "run")}, since ${SK.time(one.failing_since.started_at)}.`,
        ),
      ),
    );
  }

  function markOf(mark) {
    if (!mark) return ["–", "not held", "NOT_HELD"];
    if (!mark.held) return mark.error ? ["!", "error, not run", "ERROR"] : ["○", "no verdict", "SKIP"];
    const says = `${mark.passed} of ${mark.held} passed` + (mark.error ? `, ${mark.error} not run` : "");
    if (mark.passed === mark.held) return ["●", says, "PASS"];
    return mark.passed ? ["◐", says, "FAIL"] : ["✗", says, "FAIL"];
  }

  function caseMarks(history, order) {
    return SK.table(
      ["case", "engine", "oldest to newest"],
      history.map((one) => {
        const by = new Map(one.marks.map((mark) => [mark.run_id, mark]));
        return [
          { head: one.case_id },
          { text: one.engine + (one.variant === "without_skill" ? ", without" : "") },
          {
            node: SK.el(
              "span",
              { class: "dots" },
              order.map((id) => {
                const [sign, words, status] = markOf(by.get(id));
                const mark = by.get(id);
                return SK.el(
                  "span",
                  {
                    class: "dot status-" + status,
                    role: "img",
                    title: `${mark ? SK.time(mark.started_at) : id}: ${words}`,
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

  /* The share of trials in which no turn up to this one failed, of cases with several trials. */
  function curves(index) {
    const cases = ((index.analysis && index.analysis.cases) || []).filter(
      (one) => one.turns.length > 1 && one.rate.held > 1 && one.turns.some((turn) => turn.first_failures),
    );
    if (!cases.length) return null;
    const shown = [...cases].sort((a, b) => (a.rate.rate || 0) - (b.rate.rate || 0)).slice(0, 6);
    const longest = Math.max(...shown.map((one) => one.turns.length));
    const name = (one) =>
      `${one.case_id}, ${one.engine}` + (one.variant === "without_skill" ? ", without" : "");
    const series = shown.map((one) => ({
      name: name(one),
      values: [1, ...one.turns.map((turn) => turn.unfailed)],
    }));
    const labels = ["start", ...Array.from({ length: longest }, (_, at) => "turn " + (at + 1))];
    return SK.panel(
      "Where conversations first fail",
      "curves",
      lineChart(
        labels,
        series,
        "Share of trials with no failed turn so far, turn by turn; the table below has the numbers",
        { step: true },
      ),
      cases.length > shown.length
        ? SK.el("p", { class: "aside" }, `The ${shown.length} that pass least, of ${cases.length}.`)
        : null,
      SK.fold({ class: "chart-table" }, "As a table", () =>
        SK.table(
          ["case", "trials", ...labels.slice(1)],
          cases.map((one) => [
            { head: name(one) },
            { number: SK.count(one.rate.held) },
            ...one.turns.map((turn) => ({
              number: SK.percent(turn.unfailed),
              title: SK.plural(turn.first_failures, "first failure"),
            })),
          ]),
          "Share of trials in which no turn up to this one failed",
        ),
      ),
    );
  }
})();
