/* A conversation as it happened, from the system prompt to the last check. */
(function () {
  /* The conversation alone, without its head; also one column of a pair, and a part of a print. */
  /* `marked`: gives what is searched for the places of evidence, if not the conversation itself. */
  SK.conversation = function (detail, marked) {
    const root = SK.el("div", { class: "conversation" });
    const shared = { detail, places: SK.collectEvidence(detail), root: marked || (() => root) };
    SK.replace(
      root,
      opening(detail),
      detail.turns.map((turn) => SK.turn(turn, shared)),
      ending(detail, shared),
    );
    return root;
  };

  /* What was there before the first turn: the system prompt and the placed history. */
  function opening(detail) {
    const history = detail.history || [];
    return [
      detail.system
        ? SK.speech("system", "System prompt", "added by the case", SK.textBlock(detail.system))
        : null,
      history.length
        ? SK.el(
            "section",
            { class: "history", "aria-label": "History" },
            SK.el(
              "h3",
              { class: "minor" },
              "History ",
              SK.el(
                "span",
                { class: "aside" },
                `${SK.plural(history.length, "message")}, placed in the session, not run`,
              ),
            ),
            history.map((one) =>
              SK.speech(
                (one.role === "user" ? "user" : "agent") + " placed",
                { user: "User", assistant: "Agent", tool: "Tool" }[one.role] || one.role,
                "placed",
                [
                  one.content ? SK.textBlock(one.content) : null,
                  (one.items || []).map((item) => SK.item(item, [])),
                ],
              ),
            ),
          )
        : null,
    ];
  }

  function ending(detail, shared) {
    const end = detail.simulated_end;
    const checks = detail.conversation_checks || [];
    return [
      end
        ? SK.el(
            "p",
            { class: "simulated-end" },
            SK.el("span", { class: "label" }, "simulated user"),
            " ",
            {
              completed: "reached its aim",
              impossible: "found its aim impossible",
              limit: "stopped at the limit of turns",
            }[end.stop] || end.stop,
            end.reason ? [": ", SK.el("q", {}, end.reason)] : null,
          )
        : null,
      checks.length
        ? SK.el(
            "section",
            { class: "conversation-checks" },
            SK.checks(checks, "Checks of the whole conversation", shared.root),
          )
        : null,
    ];
  }

  SK.casePage = async function (n, turn) {
    const row = SK.page.index.rows.find((one) => one.n === n);
    let detail;
    try {
      detail = await SK.detail(n);
    } catch (problem) {
      return SK.noDetail(row, problem);
    }
    if (detail.problem) return SK.noDetail(row, new Error(detail.problem));
    const article = SK.el("article", { class: "case" }, SK.caseHead(detail, row), SK.conversation(detail));
    article.addEventListener("click", (event) => {
      const jump = event.target.closest("a.jump");
      if (!jump || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      history.replaceState(null, "", jump.getAttribute("href"));
      SK.jumpTo(article, Number(jump.dataset.turn));
    });
    SK.page.keys = keysOf(article);
    SK.page.back = () => SK.go(SK.page.tableAddress || SK.address(""));
    SK.page.shown = () => {
      if (turn) SK.jumpTo(article, turn);
    };
    document.title = `${detail.case_id} · ${SK.page.index.run.run_id} · skillup`;
    return article;
  };

  function keysOf(article) {
    const open = (row) => {
      if (row) SK.go(SK.trialAddress(row.n));
      else SK.announce("No more failing conversations");
    };
    return [
      ["n", "next failing conversation", () => open(SK.failingNeighbours(SK.page.route.n).next)],
      ["p", "previous failing conversation", () => open(SK.failingNeighbours(SK.page.route.n).previous)],
      ["j", "next turn", () => step(article, 1)],
      ["k", "previous turn", () => step(article, -1)],
      ["e", "fold or unfold all tool calls", () => toggleAll(article)],
      [
        "/",
        "back to the filter",
        () => {
          SK.page.focusFilter = true;
          SK.page.back();
        },
      ],
    ];
  }

  SK.jumpTo = function (root, number) {
    const turn = root.querySelector(`.turn[data-turn="${Number(number)}"]`);
    if (!turn) return;
    turn.focus({ preventScroll: true });
    turn.scrollIntoView({ block: "start", behavior: SK.calm() ? "auto" : "smooth" });
  };

  function step(article, by) {
    const turns = [...article.querySelectorAll(".turn")];
    let at = turns.findIndex((turn) => turn.contains(document.activeElement));
    if (at < 0) at = by > 0 ? -1 : turns.length;
    const turn = turns[Math.max(0, Math.min(turns.length - 1, at + by))];
    if (turn) SK.jumpTo(article, turn.dataset.turn);
  }

  function toggleAll(article) {
    const all = [...article.querySelectorAll("details.tool, details.reasoning, details.changes")];
    const open = !all.every((one) => one.open);
    for (const one of all) {
      if (open) one.buildInside();
      one.open = open;
    }
    SK.announce(open ? "All tool calls unfolded" : "All tool calls folded");
  }

  SK.noDetail = function (row, problem) {
    SK.page.back = () => SK.go(SK.page.tableAddress || SK.address(""));
    return SK.el(
      "article",
      { class: "case" },
      SK.el("p", { class: "way" }, SK.el("a", { href: SK.address("") }, "← All conversations")),
      SK.el("h1", {}, row ? row.case_id : "Not found"),
      row ? SK.el("p", { class: "verdict" }, SK.status(row.status), " ", row.reason || "") : null,
      SK.el(
        "p",
        { class: "notice" },
        row && /RUNNING|NOT_HELD/.test(row.status)
          ? "This conversation has not been held to its end."
          : `It cannot be shown: ${problem.message}`,
      ),
    );
  };
})();
