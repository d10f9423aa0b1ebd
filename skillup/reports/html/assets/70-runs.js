/* The start page of `skillup view`: every run of a folder, newest first. */
(function () {
  const FIRST = 100; // lines; the others on request, so that a folder of thousands is quick to filter

  SK.runsPage = function (runs) {
    const lines = new Map(); // made once
    const rest = SK.button("", () => showAll(), { id: "more", class: "quiet" });
    const body = SK.el("tbody", { id: "rows" });
    const shown = SK.el("output", { id: "shown", class: "shown" });
    const text = SK.el("input", {
      id: "filter-text",
      type: "search",
      placeholder: "Filter runs",
      autocomplete: "off",
      "aria-label": "Filter runs by words",
      "aria-keyshortcuts": "/",
      value: SK.page.filter.q || "",
      on: {
        input: () => {
          SK.setFilter({ q: text.value.trim() });
          draw();
        },
      },
    });

    function draw() {
      const words = (SK.page.filter.q || "").toLowerCase().split(/\s+/).filter(Boolean);
      const found = runs.filter((run) => words.every((word) => haystack(run).includes(word)));
      const some = SK.page.allRuns ? found : found.slice(0, FIRST);
      for (const run of some) if (!lines.has(run)) lines.set(run, line(run));
      body.replaceChildren(...some.map((run) => lines.get(run)));
      rest.hidden = some.length === found.length;
      rest.textContent = `Show ${SK.count(found.length - some.length)} more`;
      shown.value =
        found.length === runs.length
          ? SK.plural(runs.length, "run")
          : `${found.length} of ${SK.plural(runs.length, "run")}`;
    }
    const allLinks = () => [...body.querySelectorAll("a.case-link")];
    SK.page.drawAll = function () {
      SK.page.allRuns = true;
      draw();
    };
    function showAll() {
      const first = allLinks().length;
      SK.page.drawAll();
      allLinks()[first].focus({ preventScroll: true });
    }
    SK.page.moveRow = function (step) {
      let links = allLinks();
      const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
      if (at + step >= links.length && !rest.hidden) {
        SK.page.drawAll();
        links = allLinks();
      }
      const target = links[at < 0 ? 0 : Math.max(0, Math.min(links.length - 1, at + step))];
      if (target) target.focus();
    };
    SK.page.keys = [
      ["/", "filter", () => text.focus()],
      ["j ArrowDown", "next run", () => SK.page.moveRow(1)],
      ["k ArrowUp", "previous run", () => SK.page.moveRow(-1)],
    ];
    draw();
    document.title = "Runs · skillup";
    return SK.el(
      "section",
      { class: "cases" },
      SK.el("h1", {}, "Runs"),
      runs.length
        ? null
        : SK.el(
            "p",
            { class: "notice" },
            "There is no run here yet. ",
            SK.el("code", {}, "skillup run"),
            " makes one.",
          ),
      SK.el("div", { class: "filter", role: "search" }, text, shown),
      SK.el(
        "table",
        { class: "cases-table runs-table" },
        SK.el("caption", { class: "visually-hidden" }, "All runs, newest first"),
        SK.el(
          "thead",
          {},
          SK.el(
            "tr",
            {},
            ["Started", "Run", "Suites", "Engines", "Result", "Time", "Cost"].map((name) =>
              SK.el("th", { scope: "col" }, name),
            ),
          ),
        ),
        body,
      ),
      rest,
    );
  };

  function haystack(run) {
    return [run.id, run.run_id, run.status, ...run.suites, ...run.engines]
      .filter(Boolean)
      .join("\n")
      .toLowerCase();
  }

  const STATE = {
    running: ["live", "running"],
    unfinished: ["tag", "not finished"],
    damaged: ["tag", "damaged"],
  };

  function line(run) {
    const counts = Object.entries(run.counts || {}).filter(([, number]) => number);
    const [name, word] = STATE[run.status] || [null, null];
    const far =
      run.status === "running" || run.status === "unfinished"
        ? ` ${SK.count(run.done)} of ${SK.count(run.planned)}`
        : "";
    return SK.el(
      "tr",
      { "data-run": run.id },
      SK.el("td", {}, SK.time(run.started_at)),
      SK.el(
        "th",
        { scope: "row" },
        SK.el("a", { class: "case-link", href: "#/run/" + encodeURIComponent(run.id) + "/" }, run.id),
        " ",
        word ? SK.el("span", { class: name }, word + far) : null,
        run.problem ? SK.el("span", { class: "reason" }, run.problem) : null,
      ),
      SK.el("td", {}, run.suites.join(", ")),
      SK.el("td", {}, run.engines.join(", ")),
      SK.el(
        "td",
        {},
        SK.el(
          "span",
          { class: "run-counts" },
          counts.map(([status, number]) =>
            SK.el(
              "span",
              { class: "status status-" + status, title: SK.STATUS[status].word },
              SK.statusSign(status),
              " ",
              SK.count(number),
              SK.el("span", { class: "visually-hidden" }, " " + SK.STATUS[status].word),
            ),
          ),
        ),
      ),
      SK.el("td", { class: "number" }, SK.duration(run.duration_ms)),
      SK.el("td", { class: "number" }, SK.cost(run.cost_usd)),
    );
  }
})();
