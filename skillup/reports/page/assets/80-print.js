/* On paper: the summary, the table, and the conversations that failed, with everything unfolded.
   Of trials of a case that failed for the same reason, one. Of a single conversation, that one. */
(function () {
  const MOST = 100;

  /* One trial of each case and reason; `like`: the other trials that failed for it. */
  function failing() {
    const found = new Map();
    const rows = SK.page.index
      ? SK.shownRows(SK.page.index.rows, { ...SK.page.filter, status: null })
      : [];
    for (const row of rows) {
      if (row.status !== "ERROR" && (row.status !== "FAIL" || SK.isBaseline(row))) continue;
      const key = SK.caseKey(row) + "\u0000" + row.status + row.reason;
      if (found.has(key)) found.get(key).like.push(row);
      else found.set(key, { row, like: [] });
    }
    return [...found.values()].slice(0, MOST);
  }

  /* Unpacks what has to be printed, then opens the browser's dialog. */
  SK.print = async function () {
    if (SK.page.index && SK.page.route.page === "table") {
      SK.announce("Preparing the conversations that failed");
      await Promise.all(failing().map(({ row }) => SK.detail(row.n).catch(() => null)));
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
        for (const { row } of failing().slice(0, 25)) await SK.detail(row.n).catch(() => null);
      });
    }
  };

  function prepare() {
    if (document.getElementById("annex")) return;
    if (SK.page.index && SK.page.route.page === "table") {
      if (SK.page.drawAll) SK.page.drawAll();
      const annex = SK.el("section", { id: "annex" });
      for (const { row, like } of failing()) {
        const detail = SK.detailAtHand(row.n);
        if (detail && !detail.problem)
          annex.append(
            SK.el(
              "article",
              { class: "case" },
              SK.caseHead(detail, row),
              like.length
                ? SK.el(
                    "p",
                    { class: "note like" },
                    `This is trial ${row.trial}. For the same reason failed: ` +
                      like.map((one) => "trial " + one.trial).join(", ") +
                      ".",
                  )
                : null,
              SK.conversation(detail),
            ),
          );
      }
      document.getElementById("main").append(annex);
    }
    // A check that was met says on paper no more than that.
    const folded = ".matrix, .chart-table, .reasoning, .check-PASS";
    for (const fold of document.querySelectorAll(`main details:not(${folded})`)) {
      if (fold.open || fold.closest(".check-PASS")) continue;
      if (fold.buildInside) fold.buildInside();
      fold.open = true;
      fold.dataset.printed = "";
    }
  }
})();
