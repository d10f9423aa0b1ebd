/* A conversation that is going on, or not begun, under `skillup view`: what is known so far; the page
   fills in as turns end, and is whole when the trial is over. */
(function () {
  /* Under the turns that are there: what is being done now. */
  SK.liveEnd = (detail) =>
    SK.el(
      "section",
      { class: "live-end", "aria-label": "Under way" },
      (detail.under_way || []).map((turn) =>
        SK.el(
          "div",
          { class: "turn under-way" },
          SK.el(
            "header",
            { class: "turn-head" },
            SK.el("h3", {}, "Turn " + turn.turn_number),
            " ",
            turn.status === "running" ? SK.status("RUNNING") : SK.el("span", { class: "aside" }, "over"),
            SK.el("span", { class: "turn-facts" }, SK.rawLinks(turn.raw)),
          ),
          turn.message
            ? SK.speech("user", "User", "as the case has it", SK.textBlock(turn.message))
            : null,
        ),
      ),
      SK.el(
        "p",
        { class: "notice" },
        SK.el("span", { class: "live" }, "running"),
        " ",
        detail.live,
        ". Turns show themselves here when they can be read; checks, when the trial is over.",
      ),
    );

  SK.waitingPage = function (row, detail) {
    SK.page.back = () => SK.go(SK.page.tableAddress || SK.address(""));
    return SK.el(
      "article",
      { class: "case" },
      SK.el("p", { class: "way" }, SK.el("a", { href: SK.page.tableAddress || SK.address("") }, "← All conversations")),
      SK.el("h1", {}, detail.case_id),
      SK.el("p", { class: "verdict" }, SK.status(row ? row.status : "NOT_HELD"), " ", detail.waiting),
      SK.page.index.run.running
        ? SK.el("p", { class: "notice" }, "The conversation shows itself here when it begins.")
        : null,
    );
  };

  /* [[turn, places of its folds that are open]]; a turn may have thousands of folds. */
  const openFolds = () =>
    [...document.querySelectorAll("main .turn")].map((turn) => [
      turn.dataset.turn,
      foldsOf(turn).flatMap((fold, at) => (fold.open ? [at] : [])),
    ]);
  const foldsOf = (turn) => (turn ? [...turn.querySelectorAll(".said details")] : []);
  const turnOf = (number) => document.querySelector(`main .turn[data-turn="${Number(number)}"]`);

  /* Draws the trial again if something of it is new; scroll and open calls stay. */
  SK.refreshTrial = async function (before) {
    const { route } = SK.page;
    const now = await SK.detail(route.n).catch(() => null);
    if (!now || SK.page.route !== route || JSON.stringify(now) === before) return;
    await SK.render({ keep: whereReaderIs });
    SK.announce(now.live || now.waiting ? "A turn has ended" : "The conversation has ended");
  };

  function whereReaderIs() {
    const [left, top, kept] = [scrollX, scrollY, openFolds()];
    const focused = document.activeElement.closest(".turn");
    return () => {
      for (const [number, places] of kept) {
        let folds = foldsOf(turnOf(number));
        for (const at of places) {
          const fold = folds[at];
          if (!fold) continue;
          fold.buildInside();
          fold.open = true;
          if (fold.querySelector("details")) folds = foldsOf(turnOf(number)); // there are more by now
        }
      }
      const turn = focused && turnOf(focused.dataset.turn);
      if (turn) turn.focus({ preventScroll: true });
      scrollTo(left, top);
    };
  }
})();
