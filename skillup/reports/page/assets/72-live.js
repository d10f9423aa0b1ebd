/* A run that is going on, under `skillup view`: the server says when its journal grew; the page asks
   for the index again and shows it in place, so that scroll, filter and focus stay. */
(function () {
  let source = null;
  let following = null;
  let waiting = null;

  /* Follow the run that is shown, or the list of runs; stop following any other. */
  SK.follow = function () {
    const wanted = wantedEvents();
    if (wanted === following || document.hidden) return;
    if (source) source.close();
    source = null;
    following = wanted;
    if (!wanted || !window.EventSource) return;
    source = new EventSource(wanted);
    source.addEventListener("changed", askSoon);
    // When the stream begins, too: of what changed since the index was asked for, it says nothing.
    let justAsked = !SK.page.index; // the list; a run may have ended meanwhile, and then says no more
    source.addEventListener("open", () => {
      if (!justAsked) askSoon();
      justAsked = false;
    });
  };

  function askSoon() {
    if (waiting === null) waiting = setTimeout(refresh, 250); // several changes, one question
  }

  /* A browser keeps six connections to a server for all its tabs: those that nobody sees let go. */
  document.addEventListener("visibilitychange", () => {
    if (SK.page.mode !== "view") return;
    if (!document.hidden) return askSoon();
    if (source) source.close();
    source = following = null;
  });

  function wantedEvents() {
    if (SK.page.mode !== "view") return null;
    if (!SK.page.index) return SK.page.runId ? null : "api/events";
    return SK.page.index.run.finished ? null : SK.runAddress(SK.page.runId) + "/events";
  }

  async function refresh() {
    const { runId, route } = SK.page;
    waiting = null;
    let index = null;
    try {
      if (runId) index = await SK.fetchIndex(runId);
    } catch {
      return;
    } // the next event asks again
    if (SK.page.runId !== runId) return;
    // What is shown of a trial that is not over may have changed with it.
    const shown = route.page === "trial" ? SK.detailAtHand(route.n) : null;
    const before = shown && (shown.live || shown.waiting) ? JSON.stringify(shown) : null;
    if (runId) {
      SK.page.index = index;
      SK.forgetDetails();
      SK.showTop();
    }
    if (SK.page.route === route && route.page === "table") await SK.redraw();
    if (SK.page.route === route && before) await SK.refreshTrial(before);
    SK.follow();
  }

  const foldName = (fold) => (fold.closest("section[id]") || {}).id + "/" + fold.className;
  const openFolds = () => new Set([...document.querySelectorAll("main details[open]")].map(foldName));

  /* Draws the page that is shown again, keeping where the reader is. */
  SK.redraw = async function () {
    const [left, top] = [scrollX, scrollY];
    const active = document.activeElement;
    const field = active && active.id ? active.id : null;
    const place =
      field && active.selectionStart !== undefined ? [active.selectionStart, active.selectionEnd] : null;
    const row = active && active.closest ? active.closest("tr[data-n]") : null;
    const number = row ? row.dataset.n : null;
    const runRow = active && active.closest ? active.closest("tr[data-run]") : null;
    const open = openFolds();
    await SK.render({ keep: true });
    await new Promise((done) => requestAnimationFrame(done));
    for (const fold of document.querySelectorAll("main details")) {
      if (!open.has(foldName(fold))) continue;
      fold.buildInside();
      fold.open = true;
    }
    if (field && document.getElementById(field)) {
      const node = document.getElementById(field);
      node.focus({ preventScroll: true });
      if (place && node.setSelectionRange && place[0] !== null) node.setSelectionRange(...place);
    } else if (number) {
      if (SK.page.drawAll && !document.querySelector(`tr[data-n="${Number(number)}"]`)) SK.page.drawAll();
      const link = document.querySelector(`tr[data-n="${Number(number)}"] a`);
      if (link) link.focus({ preventScroll: true });
    } else if (runRow) {
      const link = document.querySelector(`tr[data-run="${CSS.escape(runRow.dataset.run)}"] a`);
      if (link) link.focus({ preventScroll: true });
    }
    if (top > 0 && SK.page.drawAll && document.documentElement.scrollHeight < top + innerHeight)
      SK.page.drawAll();
    scrollTo(left, top);
  };
})();
