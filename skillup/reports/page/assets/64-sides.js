/* Two runs side by side: the flips as a table, a pair of conversations aligned turn by turn. */
(function () {
  const CHANGE = {
    newly_failing: ["▼", "newly failing", "FAIL"],
    newly_passing: ["▲", "newly passing", "PASS"],
    changed: ["◆", "changed", "SKIP"],
    same: ["=", "same", "NOT_HELD"],
    only_a: ["A", "only in A", "NOT_HELD"],
    only_b: ["B", "only in B", "NOT_HELD"],
    not_run: ["!", "not run", "ERROR"],
  };

  function sideText(side) {
    if (!side) return SK.el("span", { class: "aside" }, "–");
    return SK.el(
      "span",
      {},
      side.status ? SK.status(side.status) : null,
      side.held > 1 ? ` ${side.passed} of ${side.held}` : null,
      SK.known(side.score) ? SK.el("span", { class: "aside" }, " " + SK.score(side.score)) : null,
    );
  }

  const runText = (run, letter) =>
    SK.el(
      "span",
      {},
      SK.el("strong", {}, letter),
      " ",
      SK.el("code", {}, run.run_id),
      SK.el("span", { class: "aside" }, " " + SK.time(run.started_at)),
    );

  /* The part of the first page that compares. */
  SK.sides = function (index) {
    const sides = index.sides;
    if (!sides) return null;
    const counts = {};
    for (const row of sides.rows) counts[row.change] = (counts[row.change] || 0) + 1;
    const body = SK.el("tbody");
    const shown = SK.el("output", { class: "shown" });
    function draw() {
      const wanted = (SK.page.filter.change || "").split(",").filter(Boolean);
      const rows = sides.rows
        .map((row, at) => [row, at])
        .filter(([row]) =>
          wanted.length
            ? wanted.includes(row.change)
            : row.change !== "same" || Object.keys(counts).length === 1,
        );
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
        const on = () => (SK.page.filter.change || "").split(",").includes(change);
        const chip = SK.button(
          [
            SK.el("span", { class: "sign", "aria-hidden": "true" }, sign + " "),
            word + " ",
            SK.el("span", { class: "chip-count" }, SK.count(counts[change])),
          ],
          () => {
            const chosen = new Set((SK.page.filter.change || "").split(",").filter(Boolean));
            if (!chosen.delete(change)) chosen.add(change);
            SK.setFilter({ change: [...chosen].join(",") || null });
            chip.setAttribute("aria-pressed", String(on()));
            draw();
          },
          { class: "chip status-" + status, "aria-pressed": String(on()), "data-change": change },
        );
        return chip;
      });
    draw();
    return SK.el(
      "section",
      { class: "sides", "aria-labelledby": "sides-title" },
      SK.el("h2", { id: "sides-title" }, "Two runs side by side"),
      SK.el("p", { class: "sides-runs" }, runText(sides.a, "A"), " → ", runText(sides.b, "B")),
      SK.el(
        "div",
        { class: "filter" },
        SK.el("div", { class: "chips", role: "group", "aria-label": "Change" }, chips),
        shown,
      ),
      SK.el(
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
      ),
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

  /* Both conversations, a row of two columns for each turn. */
  SK.pairPage = async function (at) {
    const sides = SK.page.index.sides;
    const row = sides && sides.rows[at];
    if (!row) return SK.noDetail(null, new Error("there is no such pair"));
    const get = async (side, held) =>
      side && held && SK.known(side.n) ? SK.detail(side.n).catch(() => null) : null;
    const [a, b] = await Promise.all([get(row.a, sides.details_of_a), get(row.b, true)]);
    const columns = [
      ["A", sides.a, row.a, a],
      ["B", sides.b, row.b, b],
    ];
    // Marks of one side are looked for on that side only: both sides call them by the same names.
    const marked = (letter) => () => ({
      querySelectorAll: (what) => page.querySelectorAll(`.side-${letter} ${what}`),
    });
    const conversations = columns.map(
      ([letter, , , detail]) => detail && SK.conversation(detail, marked(letter)),
    );
    const turns = Math.max(0, ...columns.map(([, , , detail]) => (detail ? detail.turns.length : 0)));
    const page = SK.el(
      "article",
      { class: "case pair" },
      SK.el(
        "p",
        { class: "way" },
        SK.el("a", { href: SK.page.tableAddress || SK.address("") }, "← Both runs"),
      ),
      SK.el(
        "h1",
        {},
        row.case_id,
        " ",
        SK.el("span", { class: "case-title" }, (CHANGE[row.change] || ["", row.change])[1]),
      ),
      SK.el(
        "div",
        { class: "pair-row pair-heads" },
        columns.map(([letter, run, side, detail]) =>
          SK.el(
            "div",
            {},
            SK.el("h2", { class: "minor" }, runText(run, letter)),
            SK.el(
              "p",
              { class: "verdict" },
              sideText(side),
              detail
                ? SK.el(
                    "span",
                    { class: "verdict-reason" },
                    " " + ((detail.grade && detail.grade.reason) || ""),
                  )
                : null,
            ),
            detail
              ? SK.error(detail.error, "The trial could not be held")
              : SK.el("p", { class: "notice" }, "Its conversation is not in this report."),
            detail && letter === "B" ? SK.el("a", { href: SK.trialAddress(detail.n) }, "Open alone") : null,
          ),
        ),
      ),
      pairRow(conversations.map((one) => rest(one, true))),
      Array.from({ length: turns }, (_, number) =>
        pairRow(
          conversations.map((one) => (one ? one.querySelector(`.turn[data-turn="${number + 1}"]`) : null)),
        ),
      ),
      pairRow(conversations.map((one) => rest(one, false))),
    );
    SK.page.back = () => SK.go(SK.page.tableAddress || SK.address(""));
    SK.page.keys = [];
    return page;
  };

  /* What is before the first turn, or after the last. */
  function rest(conversation, before) {
    if (!conversation) return null;
    const children = [...conversation.children];
    const first = children.findIndex((child) => child.classList.contains("turn"));
    const last = children.map((child) => child.classList.contains("turn")).lastIndexOf(true);
    const wanted = before
      ? children.slice(0, first < 0 ? children.length : first)
      : first < 0
        ? []
        : children.slice(last + 1);
    return wanted.length ? SK.el("div", {}, wanted) : null;
  }

  function pairRow(cells) {
    if (cells.every((cell) => !cell)) return null;
    return SK.el(
      "div",
      { class: "pair-row" },
      cells.map((cell, at) =>
        SK.el(
          "div",
          { class: "pair-cell side-" + "AB"[at] },
          cell || SK.el("p", { class: "aside nothing" }, "–"),
        ),
      ),
    );
  }
})();
