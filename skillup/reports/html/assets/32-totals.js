/* Money, tokens and time: the agent's, the judges' and the simulated user's apart. */
(function () {
  SK.totals = function (index) {
    const { summary } = index;
    if (!summary) return null;
    const lines = [["Agent", summary.cost_usd, summary.usage, null]];
    if (summary.judging)
      lines.push(["Judges", summary.judging.cost_usd, summary.judging.usage, calls(summary.judging)]);
    const user = simulated(index.rows);
    if (user)
      lines.push([
        "Simulated user",
        user.cost,
        user.tokens,
        SK.plural(user.messages, "message") + (user.models.length ? " by " + user.models.join(", ") : ""),
      ]);
    return SK.panel(
      "What it took",
      "totals",
      SK.table(
        ["", "cost", "tokens", ""],
        lines.map(([who, cost, usage, note]) => [
          { head: who },
          { number: SK.cost(cost) },
          {
            number: SK.tokenText(typeof usage === "number" ? usage : SK.tokens(usage)),
            title: typeof usage === "number" ? null : SK.usageText(usage),
          },
          { text: note || "" },
        ]),
        "Cost and tokens, by who spent them",
      ),
      SK.el(
        "p",
        { class: "aside" },
        "Time: ",
        index.run.since ? [SK.timeSince(index.run.since), " so far"] : SK.duration(summary.duration_ms),
        index.run.engines && index.run.engines.length
          ? [". ", index.run.engines.map((engine, at) => [at ? "; " : null, SK.engineText(engine)])]
          : null,
        ".",
      ),
    );
  };

  /* The sums over all trials; a sum of nothing known is not known. What was stored costs nothing: no
     more than that being known, nobody told what it took. */
  function simulated(rows) {
    const users = rows.map((row) => row.simulator).filter(Boolean);
    if (!users.length) return null;
    const sum = (values) =>
      values.some(SK.known) ? values.filter(SK.known).reduce((a, b) => a + b, 0) : null;
    const costs = users.map((one) => one.cost_usd);
    return {
      messages: sum(users.map((one) => one.messages)),
      cost: costs.every(SK.known) ? sum(costs) : sum(costs) || null,
      tokens: sum(users.map((one) => one.tokens)),
      models: [...new Set(users.flatMap((one) => one.models || []))],
    };
  }

  function calls(judging) {
    const cached = judging.cached_calls ? `, ${SK.count(judging.cached_calls)} from the cache` : "";
    const who = judging.models && judging.models.length ? " to " + judging.models.join(", ") : "";
    return SK.plural(judging.calls, "request") + cached + who;
  }

  /* "claude (claude_code 2.1.0, sonnet)" */
  SK.engineText = function (engine) {
    const adapter = [engine.adapter, engine.version].filter(Boolean).join(" ");
    const inside = [adapter, engine.model].filter(Boolean).join(", ");
    return SK.el("span", {}, engine.profile, inside && inside !== engine.profile ? ` (${inside})` : "");
  };

  /* A titled part of the summary. */
  SK.panel = function (title, id, ...children) {
    return SK.el(
      "section",
      { class: "panel", id, "aria-labelledby": id + "-title" },
      SK.el("h2", { id: id + "-title" }, title),
      children,
    );
  };

  /* A small table. Cells: {text | node | number | head, title, class}. */
  SK.table = function (heads, rows, caption) {
    const cell = (one) => {
      const inside =
        one.node || (one.head !== undefined ? one.head : one.number !== undefined ? one.number : one.text);
      const head = one.head !== undefined;
      return SK.el(
        head ? "th" : "td",
        {
          class: [one.number !== undefined ? "number" : null, one.class].filter(Boolean).join(" ") || null,
          scope: head ? "row" : null,
          title: one.title || null,
        },
        inside,
      );
    };
    return SK.el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      SK.el(
        "table",
        { class: "small" },
        SK.el("caption", { class: "visually-hidden" }, caption),
        SK.el(
          "thead",
          {},
          SK.el(
            "tr",
            {},
            heads.map((head) => SK.el("th", { scope: "col" }, head)),
          ),
        ),
        SK.el(
          "tbody",
          {},
          rows.map((row) => SK.el("tr", {}, row.map(cell))),
        ),
      ),
    );
  };
})();
