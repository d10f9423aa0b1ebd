/* Starts the page, and shows what the address says, whenever it changes. */
(function () {
  let turn = 0; // renderings: only the newest may show itself

  function filterOf(query) {
    const filter = {};
    for (const key of ["q", "deep", "status", "tag", "engine", "variant", "suite", "sort", "change", "against"]) {
      if (query.get(key)) filter[key] = query.get(key);
    }
    return filter;
  }

  async function load(route) {
    if (SK.page.mode === "report") return null;
    if (!route.runId) {
      SK.page.index = null;
      SK.page.runId = null;
      const { runs } = await SK.fetchRuns();
      if (SK.page.route !== route) return null; // the reader has gone elsewhere meanwhile
      SK.page.runs = runs;
      return SK.runsPage(runs);
    }
    const against = SK.page.filter.against || null;
    if (SK.page.runId !== route.runId || SK.page.against !== against || !SK.page.index) {
      SK.page.runId = route.runId;
      SK.page.index = null;
      SK.page.order = null;
      SK.page.tableAddress = null;
      SK.forgetDetails();
      SK.page.against = against;
      const [runs, index] = await Promise.all([
        SK.page.runs || SK.fetchRuns().then((told) => told.runs),
        SK.fetchIndex(route.runId),
      ]);
      if (SK.page.route !== route) return null;
      Object.assign(SK.page, { runs, index, toldAt: Date.now() });
    }
    return null;
  }

  function tablePage() {
    const { index } = SK.page;
    SK.page.tableAddress = SK.address("");
    SK.page.keys = [
      [
        "/",
        "filter",
        () => {
          const field = document.getElementById("filter-text");
          field.focus();
          field.select();
        },
      ],
      ["j ArrowDown", "next conversation", () => SK.page.moveRow(1)],
      ["k ArrowUp", "previous conversation", () => SK.page.moveRow(-1)],
      ["ArrowRight", "unfold a case's trials", () => SK.page.foldRow(true)],
      ["ArrowLeft", "fold them", () => SK.page.foldRow(false)],
      [
        "n",
        "first failing conversation",
        () => {
          const row = SK.failingNeighbours(null).next;
          if (row) SK.go(SK.trialAddress(row.n));
          else SK.tell("No failing conversation here");
        },
      ],
    ];
    if (SK.page.mode === "view") SK.page.back = () => SK.go("#/");
    document.title = `${index.run.run_id} · skillup`;
    return SK.firstPage(index);
  }

  /* `keep`: of a page that is drawn again: called right before that, gives what puts the reader back. */
  SK.render = async function ({ keep = null } = {}) {
    const mine = ++turn;
    const main = document.getElementById("main");
    main.setAttribute("aria-busy", "true");
    const route = SK.parseRoute(location.hash);
    const from = SK.page.route;
    Object.assign(SK.page, {
      route,
      filter: filterOf(route.query),
      shown: null,
      drawAll: null,
      showTrial: null,
      moveRow: () => {},
      foldRow: () => {},
    });
    // From one conversation to the next the keys go on while it is unpacked: n, n, n must be three steps.
    if (!(from && from.page === "trial" && route.page === "trial"))
      Object.assign(SK.page, { keys: [], back: null });
    let content;
    try {
      content = await load(route);
      if (mine !== turn) return;
      if (!content) {
        if (route.page === "trial") content = await SK.casePage(route.n, route.turn);
        else if (route.page === "compare") content = await SK.comparePage(route.n, route.other, route.turn);
        else if (route.page === "pair") content = await SK.pairPage(route.n, route.turn);
        else content = tablePage();
      }
    } catch (problem) {
      content = SK.el(
        "div",
        { class: "case" },
        SK.el("h1", {}, "This cannot be shown"),
        SK.el("p", { class: "notice" }, problem.message),
      );
    }
    if (mine !== turn) return;
    const place = from && from.page === "trial" && route.page === "trial" ? SK.readingPlace() : null;
    SK.page.shownTrial = route.page === "trial" ? route.n : null;
    SK.showTop();
    const putBack = keep && keep();
    SK.replace(main, content);
    SK.follow();
    if (putBack) {
      await null; // the table makes its rows in the moment after
      putBack();
    } else arrive(main, route, from, place);
    main.removeAttribute("aria-busy");
  };

  /* Where the reader is put: at the top, at the wanted turn, or at the row that was left. */
  function arrive(main, route, from, place) {
    if (route.page === "table") {
      requestAnimationFrame(() => {
        if (route.query.get("go")) return lead(route.query.get("go"));
        if (SK.page.focusFilter) document.getElementById("filter-text").focus();
        else if (from && /trial|compare/.test(from.page) && SK.page.showTrial) SK.page.showTrial(from.n, false);
        SK.page.focusFilter = false;
      });
      if (!from) return;
      if (from.page === "table" && !route.query.get("go")) scrollTo(0, 0);
      return;
    }
    main.focus({ preventScroll: true });
    if (!SK.page.shown && SK.returnTo(place, route.n)) return;
    scrollTo(0, 0);
    if (SK.page.shown) requestAnimationFrame(SK.page.shown);
  }

  /* Where a link of the first page leads: the number of a trial, for its case unfolded, or the name of
     a part of the page. The address forgets it, so that the same link leads there again. */
  function lead(wanted) {
    history.replaceState(null, "", SK.address(""));
    if (/^\d+$/.test(wanted)) return SK.page.showTrial && SK.page.showTrial(Number(wanted), true);
    const part = document.getElementById(wanted);
    if (!part || !document.getElementById("main").contains(part)) return;
    part.scrollIntoView({ block: "start" });
    const first = wanted === "cases" ? part.querySelector("#rows a") : part.querySelector("h2");
    if (!first) return;
    if (first.tagName === "H2") first.tabIndex = -1;
    first.focus({ preventScroll: true });
  }

  function start() {
    const index = SK.embeddedIndex();
    SK.page.mode = index && index.run && index.mode !== "view" ? "report" : "view";
    SK.page.index = SK.page.mode === "report" ? index : null;
    if (index && index.open && !location.hash)
      history.replaceState(null, "", "#/run/" + encodeURIComponent(index.open) + "/");
    SK.startTheme();
    SK.startKeys();
    document.querySelector(".skip-link").addEventListener("click", (event) => {
      event.preventDefault(); // the address after # says what is shown; it is not the link's to change
      document.getElementById("main").focus();
      document.getElementById("main").scrollIntoView();
    });
    addEventListener("hashchange", () => SK.render());
    SK.render().then(SK.startPrinting);
  }

  start();
})();
