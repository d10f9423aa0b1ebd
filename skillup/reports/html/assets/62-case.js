/* A conversation as it happened, from the system prompt to the last check. */
(function () {
  /* The conversation alone, without its head; also one column of a pair, and a part of a print. */
  /* `marked`: gives what is searched for the places of evidence, if not the conversation itself. */
  /* `differing`: Map of turn → places of its answer that are not as in another conversation. */
  SK.conversation = function (detail, marked, differing) {
    const root = SK.el("div", { class: "conversation" });
    const shared = { detail, places: SK.collectEvidence(detail), root: marked || (() => root), differing };
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
                  one.content
                    ? one.role === "user"
                      ? SK.textBlock(one.content)
                      : SK.answerBlock(one.content)
                    : null,
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
            { class: "conversation-checks", tabindex: "-1" },
            SK.checks(checks, "Checks of the whole conversation", shared.root),
          )
        : null,
    ];
  }

  SK.casePage = async function (n, turn) {
    const { route, index } = SK.page;
    const row = index.rows.find((one) => one.n === n);
    const [detail, problem] = await SK.detail(n).then(
      (found) => [found, null],
      (error) => [null, error],
    );
    if (SK.page.route !== route) return null; // keys and title are those of what is shown by now
    if (problem) return SK.noDetail(row, problem);
    if (detail.waiting) return SK.waitingPage(row, detail);
    if (detail.problem) return SK.noDetail(row, new Error(detail.problem));
    const conversation = SK.conversation(detail);
    const hits = SK.hits(conversation, SK.page.filter);
    const article = SK.el(
      "article",
      { class: "case" },
      SK.caseHead(detail, row),
      hits ? hits.bar : null,
      conversation,
      SK.attempts(detail),
      detail.live ? SK.liveEnd(detail) : null,
    );
    SK.followJumps(article, (part) => SK.trialAddress(n, part));
    SK.page.keys = [...(hits ? hits.keys : []), ...keysOf(article)];
    SK.page.back = () => SK.go(SK.page.tableAddress || SK.address(""));
    SK.page.shown = turn ? () => SK.jumpTo(article, turn) : hits && hits.first;
    document.title = `${detail.case_id} · ${SK.page.index.run.run_id} · skillup`;
    return article;
  };

  /* Links to turns move the reader there; `address`: what the browser shows then. */
  SK.followJumps = function (article, address) {
    article.addEventListener("click", (event) => {
      const jump = event.target.closest("a.jump");
      if (!jump || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const part = jump.dataset.turn;
      history.replaceState(null, "", address(part));
      if (!(jump.classList.contains("to-check") && SK.jumpToCheck(article, part))) SK.jumpTo(article, part);
    });
  };

  /* The keys of what shows turns. */
  SK.turnKeys = (article) => [
    ["j", "next turn", () => step(article, 1)],
    ["k", "previous turn", () => step(article, -1)],
    ["e", "fold or unfold all tool calls", () => toggleAll(article)],
    ["w", "messages as they were written, or drawn", () => SK.toggleAsWritten()],
  ];

  function keysOf(article) {
    // By the address, which a key changes at once: the page hears of that a moment later.
    const here = () => SK.parseRoute(location.hash).n;
    const open = (row, none) => {
      if (row) SK.go(SK.trialAddress(row.n));
      else SK.tell(none);
    };
    return [
      ["n", "next failing case", () => open(SK.failingNeighbours(here()).next, "No more failing cases")],
      [
        "p",
        "previous failing case",
        () => open(SK.failingNeighbours(here()).previous, "No failing case before"),
      ],
      ["]", "next trial of this case", () => open(SK.nextTrial(here(), 1), "This is its last trial")],
      ["[", "previous trial of this case", () => open(SK.nextTrial(here(), -1), "This is its first trial")],
      [
        "c",
        "compare with another trial of this case",
        () => {
          const [other] = SK.comparable(here());
          if (other) SK.go(SK.compareAddress(here(), other.n));
          else SK.announce("This case has no other trial");
        },
      ],
      ...SK.turnKeys(article),
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

  const partOf = (root, part) =>
    part === "end"
      ? root.querySelector(".conversation-checks")
      : root.querySelector(`.turn[data-turn="${Number(part)}"]`);

  SK.jumpTo = function (root, part) {
    const node = partOf(root, part);
    if (!node) return;
    node.focus({ preventScroll: true });
    node.scrollIntoView({ block: "start", behavior: SK.calm() ? "auto" : "smooth" });
  };

  /* To the first check of a part that was not met; false if it has none. */
  SK.jumpToCheck = function (root, part) {
    const node = partOf(root, part);
    const check =
      node && (node.querySelector(".check-FAIL, .check-ERROR") || node.querySelector(".check-SKIP"));
    if (!check) return false;
    SK.unfoldAround(check);
    SK.lightUp(check);
    const summary = check.querySelector("summary");
    if (summary) summary.focus({ preventScroll: true });
    check.scrollIntoView({ block: "center", behavior: SK.calm() ? "auto" : "smooth" });
    return true;
  };

  function step(article, by) {
    const turns = [...article.querySelectorAll(".turn:not(.of-attempt)")];
    let at = turns.findIndex((turn) => turn.contains(document.activeElement));
    if (at < 0) at = by > 0 ? -1 : turns.length;
    const turn = turns[Math.max(0, Math.min(turns.length - 1, at + by))];
    if (turn) SK.jumpTo(article, turn.dataset.turn);
  }

  function toggleAll(article) {
    const all = [...article.querySelectorAll("details.tool, details.reasoning, details.changes")];
    const open = !all.every((one) => one.open);
    const { activeElement } = document;
    const parts = [...article.querySelectorAll(".turn-head, .who, details.tool")];
    const box = (one) => one.getBoundingClientRect();
    const anchor = parts.find((one) => box(one).height && box(one).top >= 0);
    const top = anchor && box(anchor).top;
    // Where it is laid out, each of thousands would cost as much as all of them do at once.
    const place = document.createComment("");
    article.replaceWith(place);
    for (const one of all) {
      if (open) one.buildInside();
      one.open = open;
    }
    place.replaceWith(article);
    if (article.contains(activeElement)) activeElement.focus({ preventScroll: true });
    const goBack = () => anchor && scrollBy({ top: box(anchor).top - top, behavior: "instant" });
    goBack();
    // How high thousands of calls are that are out of sight is told a moment later.
    if (article.querySelector(".many")) requestAnimationFrame(() => requestAnimationFrame(goBack));
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
        row && /RUNNING|WAITING|NOT_HELD|NOT_NEEDED/.test(row.status)
          ? "This conversation has not been held to its end."
          : `It cannot be shown: ${problem.message}`,
      ),
    );
  };
})();
