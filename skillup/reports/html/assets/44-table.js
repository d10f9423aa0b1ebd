/* The table of cases: a line each, unfolding to its trials. Rows are made as they come near the
   window, and the first hundred or so at once, so that many cost nothing and what stands below the
   table can be reached. */
(function () {
  const CHUNK = 60;
  const NAMES = {
    status: "Status",
    case: "Case",
    turns: "Turns",
    engine: "Engine",
    score: "Score",
    time: "Time",
    tokens: "Tokens",
    cost: "Cost",
  };

  SK.caseTable = function (index) {
    const groups = SK.groupsOf(index.rows);
    groups.forEach((group, at) => (group.at = at)); // by which a row knows its group
    const several = groups.some((group) => group.rows.length > 1);
    const columns = columnsOf(index.rows);
    const suites = (index.run.suites || []).length > 1;
    const byCase = (list) => new Map((list || []).map((one) => [SK.caseKey(one), one]));
    const history = byCase(index.history);
    const tested = byCase((index.analysis && index.analysis.cases) || index.decided);
    const decided = [...tested.values()].some((one) => one.decision);
    const open = openGroups();
    const body = SK.el("tbody", { id: "rows" });
    const end = SK.el("div", { class: "table-end" });
    const rest = SK.button("", () => unlimited(), { id: "more", class: "quiet" });
    const nothing = SK.el(
      "p",
      { class: "nothing", id: "nothing", hidden: true },
      "No case matches this filter.",
    );
    const head = SK.el("tr");
    const made = new Map();
    let shown = [];
    let drawn = 0;
    let limit = SK.page.allRows ? Infinity : CHUNK;

    /* A group's row, and, where it is unfolded, those of its trials. */
    function rowsOf(group) {
      if (!made.has(group.key)) made.set(group.key, { row: SK.groupRow(group, about), trials: null });
      const known = made.get(group.key);
      const unfolded = group.rows.length > 1 && open.has(group.key);
      if (unfolded && !known.trials) {
        const failed = group.rows.filter((row) => row.status !== "PASS");
        const reasons = new Set(failed.map((row) => row.reason)).size > 1;
        known.trials = new Map(group.rows.map((row) => [row.n, SK.trialRow(row, { ...about, at: group.at }, reasons)]));
      }
      const trials = unfolded ? group.shown.map((row) => known.trials.get(row.n)) : [];
      for (const row of [known.row, ...trials]) {
        for (const link of row.querySelectorAll("a[data-to]"))
          link.setAttribute("href", SK.trialAddress(link.dataset.to));
      }
      const toggle = known.row.querySelector(".toggle");
      if (toggle) toggle.setAttribute("aria-expanded", String(unfolded));
      return [known.row, ...trials];
    }
    const about = { columns, suites, several, history, tested, toggle: (key) => fold(key, !open.has(key)) };

    function fold(key, unfolded) {
      const group = shown.find((one) => one.key === key);
      if (!group || group.rows.length < 2 || open.has(key) === unfolded) return;
      const known = made.get(key);
      if (!unfolded) for (const row of known.trials.values()) row.remove();
      if (unfolded) open.add(key);
      else open.delete(key);
      const [row, ...trials] = rowsOf(group);
      row.after(...trials);
      SK.announce(unfolded ? `${SK.plural(trials.length, "trial")} shown below` : "Trials folded");
    }

    function more(number) {
      const next = shown.slice(drawn, Math.min(limit, drawn + number));
      drawn += next.length;
      body.append(...next.flatMap(rowsOf));
      end.hidden = drawn >= Math.min(limit, shown.length);
      rest.hidden = drawn < limit || drawn >= shown.length;
      rest.textContent = `Show ${SK.count(shown.length - drawn)} more`;
    }

    function unlimited() {
      limit = Infinity;
      SK.page.allRows = true;
      const first = drawn;
      more(CHUNK);
      const row = [...body.querySelectorAll("tr:not(.trial)")][first];
      if (row) row.querySelector("a").focus({ preventScroll: true });
    }

    function draw() {
      shown = SK.shownGroups(groups, SK.page.filter);
      SK.page.order = shown.flatMap((group) => group.shown);
      drawn = 0;
      body.replaceChildren();
      more(CHUNK);
      SK.replace(
        head,
        columns.map((key) => headCell(key, key === "turns" && several ? "Trials" : NAMES[key], draw)),
      );
      nothing.hidden = shown.length > 0;
      const { status } = SK.page.filter;
      const filtered = ["q", "deep", "status", "tag", "engine", "variant", "suite"];
      document.getElementById("clear").hidden = !filtered.some((key) => SK.page.filter[key]);
      document.getElementById("order").setAttribute("aria-pressed", String(SK.page.filter.sort === "plan"));
      const all = index.rows.filter((row) => row.status !== "NOT_NEEDED" || SK.matches(row, { status }));
      const text = counted(SK.page.order.length, all.length, shown, groups);
      document.getElementById("shown").value = text;
      SK.announce(text + " shown");
    }

    /* The filter has changed: with `deep`, the conversations have to be read first. */
    async function changed() {
      draw();
      if (!SK.page.filter.deep || !SK.page.filter.q) return;
      const told = (done, all) => {
        const output = document.getElementById("shown");
        if (output) output.value = `reading conversations, ${SK.count(done)} of ${SK.count(all)}`;
      };
      if ((await SK.readConversations(index.rows, told)) && body.isConnected) draw();
    }

    const nearing = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting) || end.hidden) return;
        more(CHUNK);
        nearing.unobserve(end); // so that it is looked at again, in a window that is still not full
        nearing.observe(end);
      },
      { rootMargin: "800px" },
    );
    nearing.observe(end);

    SK.page.drawAll = () => {
      limit = Infinity;
      more(Infinity);
    };
    SK.page.moveRow = function (step) {
      const rows = [...body.children];
      const at = rows.findIndex((row) => row.contains(document.activeElement));
      if (at + step >= rows.length) {
        limit = Infinity;
        more(CHUNK);
      }
      const last = body.children.length - 1;
      const place = at >= 0 ? Math.max(0, Math.min(last, at + step)) : step > 0 ? 0 : last;
      focusRow(body.children[place], "nearest");
    };
    /* Unfold (true) or fold the case in which the focus is; from a trial the focus goes to its case. */
    SK.page.foldRow = function (unfolded) {
      const row = document.activeElement && document.activeElement.closest("#rows tr");
      if (!row) return;
      const { key } = groups[Number(row.dataset.group)];
      if (!unfolded && row.classList.contains("trial")) focusRow(made.get(key).row, "nearest");
      fold(key, unfolded);
    };
    /* The row of a trial, with the focus; `unfolded`: that of its case, with its trials below. */
    SK.page.showTrial = function (n, unfolded) {
      const group = shown.find((one) => one.rows.some((row) => row.n === n));
      if (!group) return;
      while (drawn <= shown.indexOf(group)) {
        limit = Infinity;
        more(CHUNK);
      }
      if (unfolded) fold(group.key, true);
      const known = made.get(group.key);
      const trial = !unfolded && open.has(group.key) && known.trials && known.trials.get(n);
      focusRow(trial && trial.isConnected ? trial : known.row, "center");
    };

    queueMicrotask(changed);
    return SK.el(
      "section",
      { class: "cases", id: "cases", "aria-labelledby": "cases-title" },
      SK.el(
        "div",
        { class: "cases-head" },
        SK.el("h2", { id: "cases-title" }, "Conversations"),
        SK.el("output", { id: "shown", for: "filter-text", class: "shown" }),
      ),
      SK.filterBar(index.rows, changed),
      SK.el(
        "table",
        { class: "cases-table" + (several ? " grouped" : "") + (decided ? " decided" : "") },
        SK.el("caption", { class: "visually-hidden" }, "Every case; its name opens the conversation"),
        SK.el("thead", {}, head),
        body,
      ),
      nothing,
      end,
      rest,
    );
  };

  function focusRow(row, block) {
    if (!row) return;
    row.querySelector("a").focus({ preventScroll: true });
    row.scrollIntoView({ block });
  }

  /* Which groups are unfolded, kept while the page shows this run. */
  function openGroups() {
    const run = SK.page.runId || "";
    if (!SK.page.unfolded || SK.page.unfolded.run !== run) SK.page.unfolded = { run, keys: new Set() };
    return SK.page.unfolded.keys;
  }

  /* Those that say anything: one engine is named above, and what no trial tells is left out. */
  function columnsOf(rows) {
    const needless = {
      engine: new Set(rows.map((row) => row.engine)).size < 2,
      tokens: !rows.some((row) => SK.known(row.tokens)),
      cost: !rows.some((row) => SK.known(row.cost_usd)),
    };
    return Object.keys(NAMES).filter((key) => !needless[key]);
  }

  /* "12 trials, 3 cases in 6 lines": of the groups that are shown, and of all. */
  function counted(trials, allTrials, shown, groups) {
    const some =
      trials === allTrials
        ? SK.plural(trials, "trial")
        : `${SK.count(trials)} of ${SK.plural(allTrials, "trial")}`;
    const cases = SK.casesOf(shown.map((group) => group.rows[0]));
    const lines = SK.casesOf(groups.map((group) => group.rows[0])) < groups.length;
    if (groups.length === allTrials && !lines) return some;
    return `${some}, ${SK.plural(cases, "case")}` + (lines ? ` in ${SK.plural(shown.length, "line")}` : "");
  }

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
})();
