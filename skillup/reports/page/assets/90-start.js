/* Starts the page, and shows what the address says, whenever it changes. */
(function () {
  let turn = 0; // renderings: only the newest may show itself

  function filterOf(query) {
    const filter = {};
    for (const key of ["q", "status", "tag", "engine", "variant", "suite", "sort", "change", "against"]) {
      if (query.get(key)) filter[key] = query.get(key);
    }
    return filter;
  }

  async function load(route) {
    if (SK.page.mode === "report") return null;
    if (!route.runId) {
      SK.page.index = null;
      SK.page.runId = null;
      SK.page.runs = (await SK.fetchRuns()).runs;
      return SK.runsPage(SK.page.runs);
    }
    const against = SK.page.filter.against || null;
    if (SK.page.runId !== route.runId || SK.page.against !== against || !SK.page.index) {
      SK.page.runId = route.runId;
      SK.page.index = null;
      SK.page.order = null;
      SK.page.tableAddress = null;
      SK.forgetDetails();
      SK.page.against = against;
      if (!SK.page.runs) SK.page.runs = (await SK.fetchRuns()).runs;
      SK.page.index = await SK.fetchIndex(route.runId);
    }
    return null;
  }

  function tablePage() {
    const { index } = SK.page;
    SK.page.tableAddress = location.hash || "#/";
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
      [
        "n",
        "first failing conversation",
        () => {
          const row = SK.failingNeighbours(null).next;
          if (row) SK.go(SK.trialAddress(row.n));
        },
      ],
    ];
    if (SK.page.mode === "view") SK.page.back = () => SK.go("#/");
    document.title = `${index.run.run_id} · skillup`;
    return [SK.summary(index), SK.besideChoice(index), SK.sides(index), SK.caseTable(index)];
  }

  SK.render = async function ({ keep = false } = {}) {
    const mine = ++turn;
    const route = SK.parseRoute(location.hash);
    const from = SK.page.route;
    Object.assign(SK.page, {
      route,
      filter: filterOf(route.query),
      shown: null,
      drawAll: null,
      moveRow: () => {},
    });
    // From one conversation to the next the keys go on while it is unpacked: n, n, n must be three steps.
    if (!(from && from.page === "trial" && route.page === "trial"))
      Object.assign(SK.page, { keys: [], back: null });
    let content;
    try {
      content = await load(route);
      if (!content) {
        if (route.page === "trial") content = await SK.casePage(route.n, route.turn);
        else if (route.page === "pair") content = await SK.pairPage(route.n);
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
    SK.showTop();
    const main = SK.replace(document.getElementById("main"), content);
    SK.follow();
    if (keep) return;
    arrive(main, route, from);
  };

  /* Where the reader is put: at the top, at the wanted turn, or at the row that was left. */
  function arrive(main, route, from) {
    if (route.page === "table") {
      requestAnimationFrame(() => {
        if (SK.page.focusFilter) document.getElementById("filter-text").focus();
        else if (from && from.page === "trial") focusRow(from.n);
        SK.page.focusFilter = false;
      });
      if (!from) return;
      if (from.page === "table") scrollTo(0, 0);
      return;
    }
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    if (SK.page.shown) requestAnimationFrame(SK.page.shown);
  }

  function focusRow(n) {
    if (SK.page.drawAll && !document.querySelector(`tr[data-n="${Number(n)}"]`)) SK.page.drawAll();
    const link = document.querySelector(`tr[data-n="${Number(n)}"] a.case-link`);
    if (link) {
      link.focus({ preventScroll: true });
      link.scrollIntoView({ block: "center" });
    }
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
