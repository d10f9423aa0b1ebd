/* What all trials say together: engines side by side, what the skill adds, flaky cases, triggering. */
(function () {
  function rateText(rate) {
    if (!rate || rate.rate === null || rate.rate === undefined) return "–";
    return `${SK.percent(rate.rate)} (${rate.passed}/${rate.held})`;
  }

  function meter(rate) {
    if (!rate || rate.rate === null || rate.rate === undefined) return SK.el("span", {}, "–");
    const whisker =
      rate.low !== null && rate.high !== null
        ? SK.el("span", {
            class: "meter-interval",
            style: `left:${rate.low * 100}%;width:${(rate.high - rate.low) * 100}%`,
          })
        : null;
    return SK.el(
      "span",
      { class: "rate", title: "interval " + SK.interval(rate.low, rate.high) },
      SK.el(
        "span",
        { class: "meter", "aria-hidden": "true" },
        SK.el("span", { class: "meter-value", style: `width:${rate.rate * 100}%` }),
        whisker,
      ),
      SK.el("span", {}, rateText(rate)),
    );
  }

  /* Each engine's rate and means, and, with several engines, each case by engine. */
  SK.engineMatrix = function (index) {
    const columns = (index.analysis && index.analysis.engines) || [];
    if (columns.length < 2) return null; // a single one would say the headline again
    const suites = new Set(columns.map((column) => column.suite)).size > 1;
    const overall = SK.table(
      [suites ? "suite, engine" : "engine", "passed", "errors", "score", "turns", "tokens", "cost", "time"],
      columns.map((column) => [
        { head: (suites ? column.suite + ", " : "") + column.engine },
        { node: meter(column.rate) },
        { number: SK.count(column.error) },
        { number: SK.score(column.score) },
        { number: SK.score(column.turns) },
        { number: SK.tokenText(column.tokens) },
        { number: SK.cost(column.cost_usd) },
        { number: SK.duration(column.duration_ms) },
      ]),
      "Engines side by side; turns, tokens, cost and time are per trial",
    );
    return SK.panel("Side by side", "engines", overall, caseMatrix(index));
  };

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
    return SK.fold(
      { class: "matrix" },
      `Each case by engine (${cases.size})`,
      () =>
        SK.table(
          ["case", ...engines],
          [...cases.values()].map(({ row, by }) => [
            { head: SK.el("span", {}, row.case_id) },
            ...engines.map((engine) => ({
              node: SK.el(
                "span",
                { class: "dots" },
                (by.get(engine) || []).map((one) =>
                  SK.el(
                    "a",
                    {
                      href: SK.trialAddress(one.n),
                      class: "dot status-" + one.status,
                      title: one.reason || "",
                      "aria-label": `${row.case_id}, ${engine}, trial ${one.trial}: ${SK.STATUS[one.status].word}`,
                    },
                    SK.STATUS[one.status].sign,
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
        one.case_id && one.suite === suite.suite && one.engine === suite.engine && SK.known(one.uplift),
    );
    return SK.mean(cases, (one) => one[side].rate);
  }

  /* With against without the skill. */
  SK.upliftTable = function (index) {
    const all = (index.analysis && index.analysis.uplift) || [];
    if (!all.length) return null;
    const several = (key) => new Set(all.map((one) => one[key])).size > 1;
    const place = (one) => [several("suite") ? one.suite : null, several("engine") ? one.engine : null];
    const line = (one) => [
      {
        head: one.case_id
          ? [one.case_id, ...place(one)].filter(Boolean).join(", ")
          : `${one.suite}, ${one.engine} (${one.cases > 1 ? "mean of " : ""}${SK.plural(one.cases, "case")})`,
      },
      { number: one.case_id ? rateText(one.with_skill) : SK.percent(meanRate(all, one, "with_skill")) },
      { number: one.case_id ? rateText(one.without_skill) : SK.percent(meanRate(all, one, "without_skill")) },
      { number: SK.points(one.uplift), class: "strong" },
      {
        number:
          one.low === null
            ? "–"
            : `${SK.signed(Math.round(one.low * 100))} to ${SK.signed(Math.round(one.high * 100))}`,
      },
      {
        number:
          one.p === null || one.p === undefined
            ? "–"
            : one.p < 0.001
              ? "<0.001"
              : String(Math.round(one.p * 1000) / 1000),
      },
      differenceText(one.turns, SK.score),
      differenceText(one.tokens, SK.tokenText),
      differenceText(one.cost_usd, SK.cost),
      differenceText(one.duration_ms, SK.duration),
    ];
    const heads = ["", "with", "without", "uplift", "interval", "p", "turns", "tokens", "cost", "time"];
    const cases = all.filter((one) => one.case_id);
    return SK.panel(
      "What the skill adds",
      "uplift",
      SK.table(heads, all.filter((one) => !one.case_id).map(line), "Pass rates with and without the skill"),
      cases.length
        ? SK.fold({}, `By case (${cases.length})`, () =>
            SK.table(heads, cases.map(line), "The same, by case"),
          )
        : null,
    );
  };

  /* Cases whose trials disagree; not how the agent wavers without the skill. */
  SK.flakyList = function (index) {
    const all = (index.analysis && index.analysis.cases) || [];
    const flaky = all.filter((one) => one.flaky && !SK.isBaseline(one));
    if (!flaky.length) return null;
    return SK.panel(
      `Flaky (${flaky.length})`,
      "flaky",
      SK.el(
        "ul",
        { class: "plain" },
        flaky.map((one) =>
          SK.el(
            "li",
            {},
            caseLink(index, one),
            " ",
            SK.el(
              "span",
              { class: "aside" },
              `${one.engine}: `,
            ),
            `${one.rate.passed} of ${one.rate.held} passed`,
            SK.el("span", { class: "aside" }, ` (${SK.interval(one.rate.low, one.rate.high)})`),
            atK(one),
            SK.decision(one, "; "),
          ),
        ),
      ),
    );
  };

  /* The chances of a few trials, as the terminal has them: of half of those held, as of all of them
     a flaky case has one pass surely and a full pass never. */
  function atK(one) {
    const k = Math.min(5, Math.max(2, Math.floor(one.rate.held / 2)));
    const found = k < one.rate.held && (one.at_k || []).find((item) => item.k === k);
    if (!found) return null;
    return SK.el(
      "span",
      { class: "aside" },
      `; pass@${k} ${SK.percent(found.pass_at_k)}, pass^${k} ${SK.percent(found.pass_hat_k)}`,
    );
  }

  /* To a case's line in the table, unfolded and not hidden by the filter. */
  function caseLink(index, one) {
    const row = firstOf(index.rows).get(SK.caseKey(one));
    const none = { q: null, deep: null, status: null, tag: null, engine: null, variant: null, suite: null };
    return row
      ? SK.el("a", { href: SK.address("", { ...none, go: String(row.n) }) }, one.case_id)
      : SK.el("span", {}, one.case_id);
  }
  SK.caseLink = caseLink;

  /* Case → the first of its rows; made once, as hundreds of cases may be linked. */
  const firsts = new WeakMap();
  function firstOf(rows) {
    if (!firsts.has(rows))
      firsts.set(rows, new Map([...rows].reverse().map((row) => [SK.caseKey(row), row])));
    return firsts.get(rows);
  }

  /* Whether skills are used when they should be, and only then. */
  SK.triggering = function (index) {
    const all = (index.analysis && index.analysis.triggering) || [];
    if (!all.length) return null;
    return SK.panel(
      "Triggering",
      "triggering",
      SK.table(
        ["skill", "precision", "recall", "F1", "used rightly", "missed", "used wrongly", "rightly not used"],
        all.map((one) => [
          { head: `${one.skill}, ${one.engine}` },
          { number: SK.percent(one.precision) },
          { number: SK.percent(one.recall) },
          { number: SK.score(one.f1) },
          { number: SK.count(one.used_rightly) },
          { number: SK.count(one.not_used_wrongly) },
          { number: SK.count(one.used_wrongly) },
          { number: SK.count(one.not_used_rightly) },
        ]),
        "Whether each skill was used when it should be",
      ),
    );
  };
})();
