/* Two runs side by side: the flips as a table, a pair of conversations aligned turn by turn. */
import { el, replace } from "../dom.js";
import { asSentence, count, known, plural, score, time } from "../format.js";
import { address, go } from "../route.js";
import { STATUS, page } from "../state.js";
import { chip } from "../table/filter_bar.js";
import { status as skStatus, statusSign } from "../table/rows.js";

const CHANGE = {
  newly_failing: ["▼", "newly failing", "FAIL"],
  newly_passing: ["▲", "newly passing", "PASS"],
  changed: ["◆", "changed", "SKIP"],
  not_run: ["!", "no verdict", "ERROR"],
  only_a: ["A", "only in A", "NOT_HELD"],
  only_b: ["B", "only in B", "NOT_HELD"],
  same: ["=", "same", "NOT_HELD"],
};

/* "✓ passed 8 of 8", "◐ passed 6 of 8", "✗ failed 8 of 8": the count is of what the word says. */
function statusText(side) {
  if (!(side.held > 1)) return side.status ? skStatus(side.status) : null;
  const flaky = side.passed > 0 && side.passed < side.held;
  const status = flaky ? "FLAKY" : side.status;
  const counted = side.status === "FAIL" && !flaky ? side.held - side.passed : side.passed;
  return [
    el(
      "span",
      { class: "status status-" + status },
      statusSign(status),
      " ",
      flaky ? "passed" : STATUS[status].word,
    ),
    ` ${counted} of ${side.held}`,
  ];
}

export function sideText(side) {
  if (!side) return el("span", { class: "aside" }, "–");
  return el(
    "span",
    {},
    statusText(side),
    known(side.score) ? el("span", { class: "aside" }, " " + score(side.score)) : null,
  );
}

export const changeWord = (change) => (CHANGE[change] || ["", change])[1];

export const runText = (run, letter) =>
  el(
    "span",
    {},
    el("strong", {}, letter),
    " ",
    el("code", {}, run.run_id),
    el("span", { class: "aside" }, " " + time(run.started_at)),
  );


/* The part of the first page that compares. */
export function sides(index) {
  const sides = index.sides;
  if (!sides) return null;
  const counts = {};
  for (const row of sides.rows) counts[row.change] = (counts[row.change] || 0) + 1;
  const body = el("tbody");
  const shown = el("output", { class: "shown" });
  const alike = el("p", { class: "nothing" }, "No case came out otherwise.");
  const table = el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Flips" },
    el(
      "table",
      { class: "cases-table sides-table" },
      el("caption", { class: "visually-hidden" }, "How each case fared in both runs"),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["Change", "Case", "A", "B", "Engine"].map((name) => el("th", { scope: "col" }, name)),
        ),
      ),
      body,
    ),
  );
  function draw() {
    const wanted = (page.filter.change || "").split(",").filter(Boolean);
    const rows = sides.rows
      .map((row, at) => [row, at])
      .filter(([row]) => (wanted.length ? wanted.includes(row.change) : row.change !== "same"));
    table.hidden = !rows.length;
    alike.hidden = rows.length > 0 || wanted.length > 0;
    replace(
      body,
      rows.map(([row, at]) => line(row, at, sides)),
    );
    shown.value = `${count(rows.length)} of ${plural(sides.rows.length, "case")}`;
  }
  const chips = Object.keys(CHANGE)
    .filter((change) => counts[change])
    .map((change) => {
      const [sign, word, status] = CHANGE[change];
      const label = [
        el("span", { class: "sign", "aria-hidden": "true" }, sign + " "),
        word + " ",
        el("span", { class: "chip-count" }, count(counts[change])),
      ];
      return chip("change", change, label, status, draw);
    });
  draw();
  return el(
    "section",
    { class: "sides", "aria-labelledby": "sides-title" },
    el("h2", { id: "sides-title" }, "Two runs side by side"),
    el("p", { class: "sides-runs" }, runText(sides.a, "A"), " → ", runText(sides.b, "B")),
    el(
      "ul",
      { class: "plain sides-summary" },
      (sides.summary || []).map((line) => el("li", {}, asSentence(line))),
    ),
    sides.notes.map((note) => el("p", { class: "aside" }, note)),
    el(
      "div",
      { class: "filter" },
      el("div", { class: "chips", role: "group", "aria-label": "Change" }, chips),
      shown,
    ),
    alike,
    table,
  );
}

/* Under view: which other run to put beside this one. */
export function besideChoice() {
  const others =
    page.mode === "view"
      ? (page.runs || []).filter((run) => run.id !== page.runId && !run.problem)
      : [];
  if (!others.length) return null;
  const select = el(
    "select",
    {
      id: "against",
      on: { change: () => go(address("", { against: select.value || null, change: null })) },
    },
    el("option", { value: "" }, "no other run"),
    others.map((run) => el("option", { value: run.id }, `${time(run.started_at)} ${run.id}`)),
  );
  select.value = page.filter.against || "";
  return el("p", { class: "beside" }, el("label", { for: "against" }, "Put beside: "), select);
}

function line(row, at, sides) {
  const [sign, word, status] = CHANGE[row.change] || ["·", row.change, "NOT_HELD"];
  const opens = (row.b && known(row.b.n)) || (sides.details_of_a && row.a && known(row.a.n));
  return el(
    "tr",
    { "data-change": row.change },
    el(
      "td",
      {},
      el(
        "span",
        { class: "status status-" + status },
        el("span", { class: "sign", "aria-hidden": "true" }, sign),
        " ",
        word,
      ),
      row.how_sure ? el("span", { class: "where" }, row.how_sure) : null,
    ),
    el(
      "th",
      { scope: "row" },
      opens ? el("a", { href: address("pair/" + at), class: "case-link" }, row.case_id) : row.case_id,
      row.variant === "without_skill" ? el("span", { class: "aside" }, " without the skill") : null,
    ),
    el("td", {}, sideText(row.a)),
    el("td", {}, sideText(row.b)),
    el("td", {}, row.engine),
  );
}
