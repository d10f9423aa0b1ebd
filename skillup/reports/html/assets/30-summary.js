/* The summary: one honest sentence first, then what it rests on. */
(function () {
  /* Counts of rows by status, of one variant. */
  SK.tally = function (rows) {
    const counts = { PASS: 0, FAIL: 0, ERROR: 0, SKIP: 0, NOT_HELD: 0, NOT_NEEDED: 0, RUNNING: 0, WAITING: 0 };
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

  /* ", 95 % interval 69–90 %". Trials of one case are not as many cases: where there are several the
     analysis has an interval over cases, and the cases' mean stands with it: "; mean of 8 cases 42 %,
     95 % interval 13–88 %". Without an analysis there is no interval. */
  function intervalOf(index, rows, counts, confidence) {
    const level = `, ${Math.round(confidence * 100)}\u202f% interval `;
    const verdicts = rows.filter(hasVerdict);
    const { cases } = meanOfCases(verdicts);
    if (cases === verdicts.length) {
      const [low, high] = SK.wilson(counts.PASS, verdicts.length, confidence);
      return level + SK.interval(low, high);
    }
    const overall = index.analysis && index.analysis.overall;
    const mean = meanText(verdicts);
    if (!overall || overall.held !== verdicts.length) return mean;
    return mean + level + SK.interval(overall.low, overall.high);
  }

  const hasVerdict = (row) => row.status === "PASS" || row.status === "FAIL";

  /* Each case counts the same, however many verdicts it has; on several engines it is one case. */
  function meanOfCases(verdicts) {
    const by = new Map();
    for (const row of verdicts) {
      const key = row.suite + "\u0000" + row.case_id;
      by.set(key, [...(by.get(key) || []), row.status === "PASS" ? 1 : 0]);
    }
    return { cases: by.size, rate: SK.mean([...by.values()], (held) => SK.mean(held, (one) => one)) };
  }

  /* Where trials are more than cases: a rate over trials is none over cases. */
  function meanText(verdicts) {
    const { cases, rate } = meanOfCases(verdicts);
    return cases < 2 || cases === verdicts.length ? "" : `; mean of ${SK.count(cases)} cases ${SK.percent(rate)}`;
  }

  /* A trial without the skill that fails is no failure of the skill: those are counted apart. */
  SK.isBaseline = (row) => row.variant === "without_skill";

  /* "Without the skill 27 of 48 passed (56 %); 1 error." Nothing where there is no baseline. */
  SK.baselineSentence = function (index) {
    const rows = index.rows.filter(SK.isBaseline);
    if (!rows.length) return null;
    const counts = SK.tally(rows);
    const held = counts.PASS + counts.FAIL;
    const parts = [
      held
        ? `${SK.count(counts.PASS)} of ${SK.count(held)} passed (${SK.percent(counts.PASS / held)}${meanText(rows.filter(hasVerdict))})`
        : "no trial has a verdict",
    ];
    if (counts.ERROR) parts.push(SK.plural(counts.ERROR, "error"));
    if (counts.SKIP) parts.push(`${SK.count(counts.SKIP)} skipped`);
    if (counts.RUNNING) parts.push(`${SK.count(counts.RUNNING)} running`);
    parts.push(...unheld(counts));
    return SK.el("p", { id: "baseline" }, `Without the skill ${parts.join("; ")}.`);
  };

  /* Those that may come yet, and those that never were held. */
  function unheld(counts) {
    return [
      counts.WAITING ? `${SK.count(counts.WAITING)} waiting` : null,
      counts.NOT_HELD ? `${SK.count(counts.NOT_HELD)} not run` : null,
    ].filter(Boolean);
  }

  /* "41 of 50 trials passed (82 %, 95 % interval 69–90 %); 2 ended in an error (no verdict)" */
  SK.sentence = function (index) {
    const baseline = index.rows.some(SK.isBaseline);
    const rows = index.rows.filter((row) => !SK.isBaseline(row));
    const counts = SK.tally(rows);
    const held = counts.PASS + counts.FAIL;
    const confidence = (index.analysis && index.analysis.confidence) || 0.95;
    const parts = [];
    if (held) {
      parts.push(
        `${SK.count(counts.PASS)} of ${SK.plural(held, "trial")} passed` +
          (baseline ? " with the skill" : "") +
          ` (${SK.percent(counts.PASS / held)}${intervalOf(index, rows, counts, confidence)})`,
      );
    } else parts.push("No trial has a verdict");
    if (counts.ERROR) parts.push(`${SK.count(counts.ERROR)} ended in an error (no verdict)`);
    if (counts.SKIP) parts.push(`${SK.count(counts.SKIP)} skipped`);
    if (counts.RUNNING) parts.push(`${SK.count(counts.RUNNING)} running`);
    parts.push(...unheld(counts));
    if ((index.not_needed || []).length) parts.push(`${SK.count(index.not_needed.length)} not needed`);
    return parts.join("; ") + ".";
  };

  /* The first page: what came of it, then the cases, then what it rests on. */
  SK.firstPage = function (index) {
    const parts = [
      SK.flakyList(index),
      SK.firstFailures(index),
      SK.trend(index),
      SK.engineMatrix(index),
      SK.triggering(index),
    ].filter(Boolean);
    const totals = SK.totals(index);
    return SK.el(
      "div",
      { class: "first-page" },
      SK.el(
        "section",
        { class: "summary", "aria-labelledby": "headline" },
        SK.el("h1", { id: "headline" }, SK.sentence(index)),
        SK.baselineSentence(index),
        SK.bar(index),
        SK.deciding(index),
        stopped(index.run),
        (index.warnings || []).map((text) => SK.el("p", { class: "notice warning" }, text)),
        jumps([...parts, totals].filter(Boolean)),
      ),
      SK.el("div", { class: "differences" }, SK.upliftTable(index), SK.besideChoice(index), SK.sides(index)),
      SK.caseTable(index),
      totals,
      parts.length ? SK.el("div", { class: "summary-parts" }, parts) : null,
    );
  };

  /* To the parts below the table. */
  function jumps(parts) {
    return SK.el(
      "nav",
      { class: "jumps", "aria-label": "Parts of this page" },
      parts.map((part) =>
        SK.el("a", { href: SK.address("", { go: part.id }), class: "to-" + part.id }, part.querySelector("h2").textContent),
      ),
    );
  }

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

  /* The shares of the statuses as one bar, and below it what each part is; a click leads to these. */
  SK.bar = function (index) {
    const rows = index.rows.filter((row) => !SK.isBaseline(row));
    const counts = SK.tally(rows);
    const parts = Object.entries(counts).filter(([, number]) => number > 0);
    if (!parts.length) return null;
    const held = parts.filter(([status]) => status !== "NOT_NEEDED");
    const variant = rows.length < index.rows.length ? "with_skill" : null;
    const to = (status) => SK.address("", { status, q: null, variant, go: "cases" });
    return SK.el(
      "div",
      { class: "bar-whole", role: "group", "aria-label": variant ? "Trials with the skill by status" : "Trials by status" },
      SK.el(
        "div",
        { class: "bar", "aria-hidden": "true" },
        held.map(([status, number]) =>
          SK.el("a", {
            class: "bar-part status-" + status,
            style: `flex-grow:${number}`,
            href: to(status),
            tabindex: "-1",
            title: `${number} ${SK.STATUS[status].word}`,
            "aria-label": `${number} ${SK.STATUS[status].word}`,
          }),
        ),
      ),
      SK.el(
        "div",
        { class: "bar-legend" },
        parts.map(([status, number]) =>
          SK.el(
            "a",
            {
              class: "bar-name status-" + status,
              href: to(status),
              "aria-label": `${number} ${SK.STATUS[status].word}: show only these`,
            },
            SK.statusSign(status),
            ` ${SK.count(number)} ${SK.STATUS[status].word}`,
          ),
        ),
      ),
    );
  };
})();
