/* Two runs side by side: the flips as a table, a pair of conversations aligned turn by turn. */
(function () {
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
    if (!(side.held > 1)) return side.status ? SK.status(side.status) : null;
    const flaky = side.passed > 0 && side.passed < side.held;
    const status = flaky ? "FLAKY" : side.status;
    const counted = side.status === "FAIL" && !flaky ? side.held - side.passed : side.passed;
    return [
      SK.el(
        "span",
        { class: "status status-" + status },
        SK.statusSign(status),
        " ",
        flaky ? "passed" : SK.STATUS[status].word,
      ),
      ` ${counted} of ${side.held}`,
    ];
  }

  function sideText(side) {
    if (!side) return SK.el("span", { class: "aside" }, "–");
    return SK.el(
      "span",
      {},
      statusText(side),
      SK.known(side.score) ? SK.el("span", { class: "aside" }, " " + SK.score(side.score)) : null,
    );
  }

  SK.changeWord = (change) => (CHANGE[change] || ["", change])[1];

  const runText = (run, letter) =>
    SK.el(
      "span",
      {},
      SK.el("strong", {}, letter),
      " ",
      SK.el("code", {}, run.run_id),
      SK.el("span", { class: "aside" }, " " + SK.time(run.started_at)),
    );

  SK.sideText = sideText;
  SK.runText = runText;

  /* The part of the first page that compares. */
  SK.sides = function (index) {
    const sides = index.sides;
    if (!sides) return null;
    const counts = {};
    for (const row of sides.rows) counts[row.change] = (counts[row.change] || 0) + 1;
    const body = SK.el("tbody");
    const shown = SK.el("output", { class: "shown" });
    const alike = SK.el("p", { class: "nothing" }, "No case came out otherwise.");
    const table = SK.el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Flips" },
      SK.el(
        "table",
        { class: "cases-table sides-table" },
        SK.el("caption", { class: "visually-hidden" }, "How each case fared in both runs"),
        SK.el(
          "thead",
          {},
          SK.el(
            "tr",
            {},
            ["Change", "Case", "A", "B", "Engine"].map((name) => SK.el("th", { scope: "col" }, name)),
          ),
        ),
        body,
      ),
    );
    function draw() {
      const wanted = (SK.page.filter.change || "").split(",").filter(Boolean);
      const rows = sides.rows
        .map((row, at) => [row, at])
        .filter(([row]) => (wanted.length ? wanted.includes(row.change) : row.change !== "same"));
      table.hidden = !rows.length;
      alike.hidden = rows.length > 0 || wanted.length > 0;
      SK.replace(
        body,
        rows.map(([row, at]) => line(row, at, sides)),
      );
      shown.value = `${SK.count(rows.length)} of ${SK.plural(sides.rows.length, "case")}`;
    }
    const chips = Object.keys(CHANGE)
      .filter((change) => counts[change])
      .map((change) => {
        const [sign, word, status] = CHANGE[change];
        const label = [
          SK.el("span", { class: "sign", "aria-hidden": "true" }, sign + " "),
          word + " ",
          SK.el("span", { class: "chip-count" }, SK.count(counts[change])),
        ];
        return SK.chip("change", change, label, status, draw);
      });
    draw();
    return SK.el(
      "section",
      { class: "sides", "aria-labelledby": "sides-title" },
      SK.el("h2", { id: "sides-title" }, "Two runs side by side"),
      SK.el("p", { class: "sides-runs" }, runText(sides.a, "A"), " → ", runText(sides.b, "B")),
      SK.el(
        "ul",
        { class: "plain sides-summary" },
        (sides.summary || []).map((line) => SK.el("li", {}, SK.asSentence(line))),
      ),
      sides.notes.map((note) => SK.el("p", { class: "aside" }, note)),
      SK.el(
        "div",
        { class: "filter" },
        SK.el("div", { class: "chips", role: "group", "aria-label": "Change" }, chips),
        shown,
      ),
      alike,
      table,
    );
  };

  /* Under view: which other run to put beside this one. */
  SK.besideChoice = function () {
    const others =
      SK.page.mode === "view"
        ? (SK.page.runs || []).filter((run) => run.id !== SK.page.runId && !run.problem)
        : [];
    if (!others.length) return null;
    const select = SK.el(
      "select",
      {
        id: "against",
        on: { change: () => SK.go(SK.address("", { against: select.value || null, change: null })) },
      },
      SK.el("option", { value: "" }, "no other run"),
      others.map((run) => SK.el("option", { value: run.id }, `${SK.time(run.started_at)} ${run.id}`)),
    );
    select.value = SK.page.filter.against || "";
    return SK.el("p", { class: "beside" }, SK.el("label", { for: "against" }, "Put beside: "), select);
  };

  function line(row, at, sides) {
    const [sign, word, status] = CHANGE[row.change] || ["·", row.change, "NOT_HELD"];
    const opens = (row.b && SK.known(row.b.n)) || (sides.details_of_a && row.a && SK.known(row.a.n));
    return SK.el(
      "tr",
      { "data-change": row.change },
      SK.el(
        "td",
        {},
        SK.el(
          "span",
          { class: "status status-" + status },
          SK.el("span", { class: "sign", "aria-hidden": "true" }, sign),
          " ",
          word,
        ),
        row.how_sure ? SK.el("span", { class: "where" }, row.how_sure) : null,
      ),
      SK.el(
        "th",
        { scope: "row" },
        opens ? SK.el("a", { href: SK.address("pair/" + at), class: "case-link" }, row.case_id) : row.case_id,
        row.variant === "without_skill" ? SK.el("span", { class: "aside" }, " without the skill") : null,
      ),
      SK.el("td", {}, sideText(row.a)),
      SK.el("td", {}, sideText(row.b)),
      SK.el("td", {}, row.engine),
    );
  }
})();
