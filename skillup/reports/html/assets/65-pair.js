/* Two conversations in two columns, aligned by turn: of two runs, or two trials of one case. */
(function () {
  /* `heads`: what stands over each column; `details`: [a, b], null where there is none; `top`: what is
     above both; `address(part)`: what the browser shows for a turn. */
  SK.pair = function ({ heads, details, top, address }) {
    const { turns, words } = SK.differences(...details);
    const page = SK.el("article", { class: "case pair" });
    // Marks of one side are looked for on that side only: both sides call them by the same names.
    const marked = (letter) => () => ({
      querySelectorAll: (what) => page.querySelectorAll(`.side-${letter} ${what}`),
    });
    const conversations = details.map(
      (detail, at) => detail && SK.conversation(detail, marked("AB"[at]), words[at]),
    );
    const first = turns.findIndex((what) => what.length);
    // Appended bit by bit: the page is there for `marked` before it is filled.
    page.append(
      ...top,
      SK.el(
        "div",
        { class: "pair-row pair-heads" },
        heads.map((head) => SK.el("div", {}, head)),
      ),
    );
    const all = details.every(Boolean);
    if (all) page.append(firstDifference(turns, first, address));
    // Both before the turns are taken out: what is after them is known by them.
    const [before, after] = [true, false].map((which) => pairRow(conversations.map((one) => rest(one, which))));
    const rows = [
      before,
      ...turns.map((what, at) =>
        pairRow(
          conversations.map((one) => (one ? one.querySelector(`.turn[data-turn="${at + 1}"]`) : null)),
          all ? { number: at + 1, what, first: at === first } : null,
        ),
      ),
      after,
    ];
    page.append(...rows.filter(Boolean));
    turns.forEach((what, at) => {
      if (what.includes("tool calls")) markCall(page, details, at);
    });
    SK.followJumps(page, address);
    SK.page.keys = [["d", "next difference", () => nextDifference(page)], ...SK.turnKeys(page)];
    return page;
  };

  function firstDifference(turns, first, address) {
    if (first < 0)
      return SK.el("p", { class: "first-difference" }, "Messages, tool calls and answers are the same.");
    const count = turns.filter((what) => what.length).length;
    return SK.el(
      "p",
      { class: "first-difference" },
      SK.el(
        "a",
        { href: address(first + 1), class: "jump", "data-turn": first + 1 },
        `First difference: turn ${first + 1}`,
      ),
      ` (${turns[first].join(", ")})`,
      count > 1 ? SK.el("span", { class: "aside" }, `; ${SK.plural(count, "turn")} differ`) : null,
    );
  }

  /* The first call that is not the same gets a sign on both sides. */
  function markCall(page, details, at) {
    const [a, b] = details.map((detail) => detail.turns[at]);
    const place = SK.firstOtherCall(a, b);
    for (const letter of "AB") {
      const turn = page.querySelector(`.side-${letter} > .turn[data-turn="${at + 1}"]`);
      const calls = turn
        ? turn.querySelectorAll(
            ":scope > .turn-body > .said > .agent > .tool, :scope > .turn-body > .said > .agent > .sub-agent > .tool",
          )
        : [];
      const call = calls[place];
      if (!call) continue;
      call.classList.add("differs-here");
      call.querySelector("summary").append(SK.el("span", { class: "tag" }, "differs"));
    }
  }

  function nextDifference(page) {
    const rows = [...page.querySelectorAll(".pair-row.differing")];
    const next = rows.find((row) => row.getBoundingClientRect().top > 80) || rows[0];
    if (!next) return SK.announce("There is no difference");
    const turn = next.querySelector(".turn");
    if (turn) turn.focus({ preventScroll: true });
    next.scrollIntoView({ block: "start", behavior: SK.calm() ? "auto" : "smooth" });
  }

  /* Both conversations of a case, in two runs. */
  SK.pairPage = async function (at, turn) {
    const { route } = SK.page;
    const sides = SK.page.index.sides;
    const row = sides && sides.rows[at];
    if (!row) return SK.noDetail(null, new Error("there is no such pair"));
    const get = async (side, held) =>
      side && held && SK.known(side.n) ? SK.detail(side.n).catch(() => null) : null;
    const found = await Promise.all([get(row.a, sides.details_of_a), get(row.b, true)]);
    if (SK.page.route !== route) return null;
    const details = found.map((detail) => (detail && detail.turns ? detail : null));
    const columns = [
      ["A", sides.a, row.a],
      ["B", sides.b, row.b],
    ];
    const way = SK.page.tableAddress || SK.address("");
    SK.page.back = () => SK.go(way);
    const page = SK.pair({
      details,
      address: (part) => SK.address(`pair/${at}/turn/${part}`),
      top: [
        SK.el("p", { class: "way" }, SK.el("a", { href: way }, "← Both runs")),
        SK.el(
          "h1",
          {},
          row.case_id,
          " ",
          SK.el("span", { class: "case-title" }, SK.changeWord(row.change)),
        ),
        ...edited(row.case_changes || []),
      ],
      heads: columns.map(([letter, run, side], place) => [
        SK.el("h2", { class: "minor" }, SK.runText(run, letter)),
        head(details[place], SK.sideText(side)),
        details[place] && letter === "B"
          ? SK.el("a", { href: SK.trialAddress(details[place].n) }, "Open alone")
          : null,
      ]),
    });
    SK.page.shown = turn ? () => SK.jumpTo(page, turn) : null;
    return page;
  };

  const edited = (changes) =>
    changes.length
      ? [
          SK.el(
            "p",
            { class: "notice case-changes" },
            SK.el("strong", {}, "The case was changed between the two runs"),
            `: ${changes.join(", ")}.`,
          ),
        ]
      : [];

  /* A column's verdict. */
  function head(detail, status) {
    return [
      SK.el(
        "p",
        { class: "verdict" },
        status,
        detail && detail.grade && detail.grade.reason
          ? SK.el("span", { class: "verdict-reason" }, " " + detail.grade.reason)
          : null,
      ),
      detail
        ? SK.error(detail.error, "The trial could not be held", SK.lastRaw(detail))
        : SK.el("p", { class: "notice" }, "Its conversation is not in this report."),
    ];
  }
  SK.pairHead = head;

  /* What is before the first turn, or after the last. */
  function rest(conversation, before) {
    if (!conversation) return null;
    const children = [...conversation.children];
    const isTurn = children.map((child) => child.classList.contains("turn"));
    const first = isTurn.indexOf(true);
    const last = isTurn.lastIndexOf(true);
    const wanted = before
      ? children.slice(0, first < 0 ? children.length : first)
      : first < 0
        ? []
        : children.slice(last + 1);
    return wanted.length ? SK.el("div", {}, wanted) : null;
  }

  /* `turn`: {number, what: [what differs], first}, of a row that shows one. */
  function pairRow(cells, turn = null) {
    if (cells.every((cell) => !cell)) return null;
    const differs = turn && turn.what.length > 0;
    return SK.el(
      "div",
      { class: "pair-row" + (differs ? " differing" : "") },
      differs
        ? SK.el(
            "p",
            { class: "difference" },
            SK.el("span", { "aria-hidden": "true" }, "≠ "),
            turn.first ? SK.el("strong", {}, "first difference: ") : "differs: ",
            turn.what.join(", "),
          )
        : null,
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
