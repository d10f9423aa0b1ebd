/* Money, tokens and time: the agent's, the judges' and the simulated user's apart. */
import { el } from "../dom.js";
import { cost as skCost, count, duration, known, plural, tokenText, tokens, usageText } from "../format.js";
import { timeSince } from "../live/running_time.js";

export function totals(index) {
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
      plural(user.messages, "message") + (user.models.length ? " by " + user.models.join(", ") : ""),
    ]);
  return panel(
    "What it took",
    "totals",
    table(
      ["", "cost", "tokens", ""],
      lines.map(([who, cost, usage, note]) => [
        { head: who },
        { number: skCost(cost) },
        {
          number: tokenText(typeof usage === "number" ? usage : tokens(usage)),
          title: typeof usage === "number" ? null : usageText(usage),
        },
        { text: note || "" },
      ]),
      "Cost and tokens, by who spent them",
    ),
    el(
      "p",
      { class: "aside" },
      "Time: ",
      index.run.since ? [timeSince(index.run.since), " so far"] : duration(summary.duration_ms),
      index.run.engines && index.run.engines.length
        ? [". ", index.run.engines.map((engine, at) => [at ? "; " : null, engineText(engine)])]
        : null,
      ".",
    ),
  );
}

/* The sums over all trials; a sum of nothing known is not known. What was stored costs nothing: no
   more than that being known, nobody told what it took. */
function simulated(rows) {
  const users = rows.map((row) => row.simulator).filter(Boolean);
  if (!users.length) return null;
  const sum = (values) =>
    values.some(known) ? values.filter(known).reduce((a, b) => a + b, 0) : null;
  const costs = users.map((one) => one.cost_usd);
  return {
    messages: sum(users.map((one) => one.messages)),
    cost: costs.every(known) ? sum(costs) : sum(costs) || null,
    tokens: sum(users.map((one) => one.tokens)),
    models: [...new Set(users.flatMap((one) => one.models || []))],
  };
}

function calls(judging) {
  const cached = judging.cached_calls ? `, ${count(judging.cached_calls)} from the cache` : "";
  const who = judging.models && judging.models.length ? " to " + judging.models.join(", ") : "";
  return plural(judging.calls, "request") + cached + who;
}

/* "claude (claude_code 2.1.0, sonnet)" */
export function engineText(engine) {
  const adapter = [engine.adapter, engine.version].filter(Boolean).join(" ");
  const inside = [adapter, engine.model].filter(Boolean).join(", ");
  return el("span", {}, engine.profile, inside && inside !== engine.profile ? ` (${inside})` : "");
}

/* A titled part of the summary. */
export function panel(title, id, ...children) {
  return el(
    "section",
    { class: "panel", id, "aria-labelledby": id + "-title" },
    el("h2", { id: id + "-title" }, title),
    children,
  );
}

/* A small table. Cells: {text | node | number | head, title, class}. */
export function table(heads, rows, caption) {
  const cell = (one) => {
    const inside =
      one.node || (one.head !== undefined ? one.head : one.number !== undefined ? one.number : one.text);
    const head = one.head !== undefined;
    return el(
      head ? "th" : "td",
      {
        class: [one.number !== undefined ? "number" : null, one.class].filter(Boolean).join(" ") || null,
        scope: head ? "row" : null,
        title: one.title || null,
      },
      inside,
    );
  };
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      { class: "small" },
      el("caption", { class: "visually-hidden" }, caption),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((head) => el("th", { scope: "col" }, head)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) => el("tr", {}, row.map(cell))),
      ),
    ),
  );
}
