/* On paper: the summary, the table, and the conversations that failed, with everything unfolded.
   Of a single conversation, that conversation. */
(function () {
  const MOST = 100;

  const failing = () =>
    (SK.page.index ? SK.shownRows(SK.page.index.rows, { ...SK.page.filter, status: null }) : [])
      .filter((row) => row.status === "FAIL" || row.status === "ERROR")
      .slice(0, MOST);

  /* Unpacks what has to be printed, then opens the browser's dialog. */
  SK.print = async function () {
    if (SK.page.index && SK.page.route.page === "table") {
      SK.announce("Preparing the conversations that failed");
      await Promise.all(failing().map((row) => SK.detail(row.n).catch(() => null)));
    }
    window.print();
  };

  SK.startPrinting = function () {
    addEventListener("beforeprint", prepare);
    addEventListener("afterprint", () => {
      const annex = document.getElementById("annex");
      if (annex) annex.remove();
      for (const fold of document.querySelectorAll("details[data-printed]")) {
        fold.open = false;
        delete fold.dataset.printed;
      }
    });
    // The browser's own menu does not wait for us: have the first ones at hand.
    if (SK.page.mode === "report") {
      const later = window.requestIdleCallback || ((work) => setTimeout(work, 500));
      later(async () => {
        for (const row of failing().slice(0, 25)) await SK.detail(row.n).catch(() => null);
      });
    }
  };

  function prepare() {
    if (document.getElementById("annex")) return;
    if (SK.page.index && SK.page.route.page === "table") {
      if (SK.page.drawAll) SK.page.drawAll();
      const annex = SK.el("section", { id: "annex" });
      for (const row of failing()) {
        const detail = SK.detailAtHand(row.n);
        if (detail && !detail.problem)
          annex.append(
            SK.el("article", { class: "case" }, SK.caseHead(detail, row), SK.conversation(detail)),
          );
      }
      document.getElementById("main").append(annex);
    }
    for (const fold of document.querySelectorAll("main details:not(.matrix, .chart-table, .reasoning)")) {
      if (fold.open) continue;
      if (fold.buildInside) fold.buildInside();
      fold.open = true;
      fold.dataset.printed = "";
    }
  }
})();
