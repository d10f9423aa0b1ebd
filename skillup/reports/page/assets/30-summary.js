/* The summary: one honest sentence first, then what it rests on. */
(function () {
  /* Counts of rows by status, of one variant. */
  SK.tally = function (rows) {
    const counts = { PASS: 0, FAIL: 0, ERROR: 0, SKIP: 0, NOT_HELD: 0, RUNNING: 0 };
    for (const row of rows) counts[row.status] = (counts[row.status] || 0) + 1;
    return counts;
  };

  /* Wilson's interval of a rate; docs/nightly.md has the arithmetic. */
  SK.wilson = function (passed, held, confidence) {
    if (!held) return null;
    const z = quantile((1 + confidence) / 2);
    const rate = passed / held;
    const middle = rate + (z * z) / (2 * held);
    const half = z * Math.sqrt((rate * (1 - rate)) / held + (z * z) / (4 * held * held));
    const whole = 1 + (z * z) / held;
    return [Math.max(0, (middle - half) / whole), Math.min(1, (middle + half) / whole)];
  };

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

  /* "41 of 50 trials passed (82 %, 95 % interval 69–90 %); 2 errors, not run; 1 skipped" */
  SK.sentence = function (index) {
    const baseline = index.rows.some((row) => row.variant === "without_skill");
    const rows = index.rows.filter((row) => !baseline || row.variant === "with_skill");
    const counts = SK.tally(rows);
    const held = counts.PASS + counts.FAIL;
    const confidence = (index.analysis && index.analysis.confidence) || 0.95;
    const rate = held ? SK.wilson(counts.PASS, held, confidence) : null;
    const parts = [];
    if (held) {
      parts.push(
        `${SK.count(counts.PASS)} of ${SK.plural(held, "trial")} passed` +
          (baseline ? " with the skill" : "") +
          ` (${SK.percent(counts.PASS / held)}, ` +
          `${Math.round(confidence * 100)}\u202f% interval ${SK.interval(rate[0], rate[1])})`,
      );
    } else parts.push("No trial has a verdict");
    if (counts.ERROR) parts.push(`${SK.plural(counts.ERROR, "error")}, not run`);
    if (counts.SKIP) parts.push(`${SK.count(counts.SKIP)} skipped`);
    if (counts.RUNNING) parts.push(`${SK.count(counts.RUNNING)} running`);
    const missing = counts.NOT_HELD || (index.not_run || []).length;
    if (missing) parts.push(`${SK.count(missing)} not held${index.run.running ? " yet" : ""}`);
    if ((index.not_needed || []).length) parts.push(`${SK.count(index.not_needed.length)} not needed`);
    return parts.join("; ") + ".";
  };

  SK.summary = function (index) {
    return SK.el(
      "section",
      { class: "summary", "aria-labelledby": "headline" },
      SK.el("h1", { id: "headline" }, SK.sentence(index)),
      stopped(index.run),
      SK.bar(index),
      SK.el(
        "div",
        { class: "summary-parts" },
        SK.totals(index),
        SK.engineMatrix(index),
        SK.upliftTable(index),
        SK.flakyList(index),
        SK.triggering(index),
      ),
      SK.charts(index),
    );
  };

  function stopped(run) {
    if (run.stopped) {
      return SK.el(
        "p",
        { class: "notice", id: "stopped" },
        SK.el("strong", {}, "Stopped early: "),
        run.stopped.message,
        " ",
        SK.el("span", { class: "aside" }, `(${run.stopped.kind})`),
      );
    }
    if (!run.finished && !run.running) {
      return SK.el(
        "p",
        { class: "notice", id: "stopped" },
        "This run did not finish. ",
        SK.el("code", {}, `skillup run --resume ${run.path || run.run_id}`),
        " completes it.",
      );
    }
    return null;
  }

  /* The shares of the statuses as one bar; each part filters the table. */
  SK.bar = function (index) {
    const counts = SK.tally(index.rows);
    const parts = Object.entries(counts).filter(([, number]) => number > 0);
    if (!parts.length) return null;
    return SK.el(
      "div",
      { class: "bar", role: "group", "aria-label": "Trials by status" },
      parts.map(([status, number]) =>
        SK.el(
          "a",
          {
            class: "bar-part status-" + status,
            style: `flex-grow:${number}`,
            href: SK.address("", { status, q: null }),
            "aria-label": `${number} ${SK.STATUS[status].word}: show only these`,
          },
          SK.statusSign(status),
          " ",
          SK.count(number),
          SK.el("span", { class: "bar-word" }, " " + SK.STATUS[status].word),
        ),
      ),
    );
  };
})();
