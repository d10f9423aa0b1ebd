/* The table of cases. Rows are made as they come near the window, so that many cost nothing. */
(function () {
  const CHUNK = 60;
  const COLUMNS = [
    ["status", "Status"],
    ["case", "Case"],
    ["turns", "Turns"],
    ["engine", "Engine"],
    ["score", "Score"],
    ["time", "Time"],
    ["tokens", "Tokens"],
    ["cost", "Cost"],
  ];

  SK.statusSign = (status) => SK.el("span", { class: "sign", "aria-hidden": "true" }, SK.STATUS[status].sign);

  SK.status = (status) =>
    SK.el("span", { class: "status status-" + status }, SK.statusSign(status), " ", SK.STATUS[status].word);

  const DOT = { completed: "●", failed: "✗", skipped: "○", error: "!" };
  const WORD = { completed: "ok", failed: "failed", skipped: "skipped", error: "error" };

  /* A turn's sign: "failed" too where it was held and its checks failed. */
  SK.turnMark = function (turn) {
    const status = turn.status === "completed" && turn.ok === false ? "failed" : turn.status;
    return {
      sign: DOT[status] || "·",
      word: WORD[status] || status,
      status: { completed: "PASS", failed: "FAIL", skipped: "SKIP", error: "ERROR" }[status] || "NOT_HELD",
    };
  };

  SK.dots = function (turns) {
    const marks = turns.map(SK.turnMark);
    const words = marks.map((mark, at) => `turn ${at + 1} ${mark.word}`).join(", ");
    return SK.el(
      "span",
      { class: "dots", role: "img", "aria-label": words || "no turns", title: words },
      marks.slice(0, 24).map((mark) => SK.el("span", { class: "dot status-" + mark.status }, mark.sign)),
      marks.length > 24 ? `+${marks.length - 24}` : null,
    );
  };

  SK.caseTable = function (index) {
    const body = SK.el("tbody", { id: "rows" });
    const end = SK.el("div", { class: "table-end" });
    const nothing = SK.el(
      "p",
      { class: "nothing", id: "nothing", hidden: true },
      "No case matches this filter.",
    );
    const head = SK.el("tr");
    const made = new Map();
    let shown = [];
    let drawn = 0;

    function more(number) {
      const next = shown.slice(drawn, drawn + number);
      drawn += next.length;
      body.append(
        ...next.map((row) => {
          if (!made.has(row)) made.set(row, rowOf(row, suites, repeated.has(caseKey(row))));
          else made.get(row).querySelector("a").setAttribute("href", SK.trialAddress(row.n));
          return made.get(row);
        }),
      );
      end.hidden = drawn >= shown.length;
    }

    function draw() {
      shown = SK.shownRows(index.rows, SK.page.filter);
      SK.page.order = shown;
      drawn = 0;
      body.replaceChildren();
      more(CHUNK);
      SK.replace(
        head,
        COLUMNS.map(([key, name]) => headCell(key, name, draw)),
      );
      nothing.hidden = shown.length > 0;
      const text =
        shown.length === index.rows.length
          ? `${SK.plural(shown.length, "trial")}`
          : `${SK.count(shown.length)} of ${SK.plural(index.rows.length, "trial")}`;
      document.getElementById("shown").value = text;
      SK.announce(text + " shown");
    }

    const nearing = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting) || drawn >= shown.length) return;
        more(CHUNK);
        nearing.unobserve(end); // so that it is looked at again, in a window that is still not full
        nearing.observe(end);
      },
      { rootMargin: "800px" },
    );
    nearing.observe(end);

    SK.page.drawAll = () => more(Infinity);
    SK.page.moveRow = function (step) {
      const rows = [...body.children];
      const at = rows.findIndex((row) => row.contains(document.activeElement));
      if (at + step >= rows.length) more(CHUNK);
      const target =
        body.children[
          at < 0
            ? step > 0
              ? 0
              : rows.length - 1
            : Math.max(0, Math.min(body.children.length - 1, at + step))
        ];
      if (target) {
        target.querySelector("a").focus();
        target.scrollIntoView({ block: "nearest" });
      }
    };
    const repeated = new Set(index.rows.filter((row) => row.trial > 1).map(caseKey));
    const suites = (index.run.suites || []).length > 1;
    const section = SK.el(
      "section",
      { class: "cases", "aria-labelledby": "cases-title" },
      SK.el("h2", { id: "cases-title" }, "Conversations"),
      SK.filterBar(index.rows, draw),
      SK.el(
        "table",
        { class: "cases-table" },
        SK.el("caption", { class: "visually-hidden" }, "Every trial; the case's name opens its conversation"),
        SK.el("thead", {}, head),
        body,
      ),
      nothing,
      end,
    );
    queueMicrotask(draw);
    return section;
  };

  function headCell(key, name, draw) {
    const sort = SK.page.filter.sort || "";
    const direction = sort === key ? "ascending" : sort === "-" + key ? "descending" : null;
    return SK.el(
      "th",
      { scope: "col", class: "column-" + key, "aria-sort": direction },
      SK.button(
        [
          name,
          SK.el(
            "span",
            { class: "sort", "aria-hidden": "true" },
            direction === "ascending" ? " ↑" : direction === "descending" ? " ↓" : "",
          ),
        ],
        () => {
          SK.setFilter({ sort: sort === key ? "-" + key : sort === "-" + key ? null : key });
          draw();
          document.querySelector(`.column-${key} button`).focus();
        },
        { class: "column", title: "Sort by " + name.toLowerCase() },
      ),
    );
  }

  const caseKey = (row) => [row.suite, row.case_id, row.engine, row.variant].join("\u0000");

  function rowOf(row, suites, several) {
    const aside = [
      suites ? row.suite : null,
      row.variant === "without_skill" ? "without the skill" : null,
      several ? "trial " + row.trial : null,
      row.branch_of ? "branch of " + row.branch_of : null,
    ].filter(Boolean);
    const cell = (key, attributes, ...inside) =>
      SK.el(
        "td",
        { ...attributes, class: ["column-" + key, attributes.class].filter(Boolean).join(" ") },
        inside,
      );
    return SK.el(
      "tr",
      {
        "data-n": row.n,
        class: "row status-row-" + row.status,
        on: {
          click: (event) => {
            if (!event.target.closest("a") && !String(getSelection())) SK.go(SK.trialAddress(row.n));
          },
        },
      },
      cell("status", {}, SK.status(row.status)),
      SK.el(
        "th",
        { scope: "row", class: "column-case" },
        SK.el("a", { href: SK.trialAddress(row.n), class: "case-link" }, row.case_id),
        row.title ? SK.el("span", { class: "case-title" }, row.title) : null,
        aside.length ? SK.el("span", { class: "aside" }, aside.join(" · ")) : null,
        row.flaky ? SK.el("span", { class: "tag flaky" }, "flaky") : null,
        (row.tags || []).map((tag) => SK.el("span", { class: "tag" }, tag)),
        row.status === "PASS" || !row.reason ? null : SK.el("span", { class: "reason" }, row.reason),
      ),
      cell("turns", {}, SK.dots(row.turns || [])),
      cell("engine", {}, row.engine),
      cell("score", { class: "number" }, SK.score(row.score)),
      cell("time", { class: "number" }, SK.duration(row.duration_ms)),
      cell("tokens", { class: "number" }, SK.tokenText(row.tokens)),
      cell("cost", { class: "number" }, SK.cost(row.cost_usd)),
    );
  }
})();
