/* The table of cases: a line each, unfolding to its trials. Rows are made as they come near the
   window, and the first hundred or so at once, so that many cost nothing and what stands below the
   table can be reached. */
import { announce, button as skButton, el, replace } from "../dom.js";
import { count, known as skKnown, plural } from "../format.js";
import { setFilter, trialAddress } from "../route.js";
import { page } from "../state.js";
import { matches } from "./filter.js";
import { filterBar } from "./filter_bar.js";
import { caseKey, casesOf, groupsOf, shownGroups } from "./groups.js";
import { groupRow, trialRow } from "./rows.js";
import { readConversations } from "./search.js";

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

export function caseTable(index) {
  const groups = groupsOf(index.rows);
  groups.forEach((group, at) => (group.at = at)); // by which a row knows its group
  const several = groups.some((group) => group.rows.length > 1);
  const columns = columnsOf(index.rows);
  const suites = (index.run.suites || []).length > 1;
  const byCase = (list) => new Map((list || []).map((one) => [caseKey(one), one]));
  const history = byCase(index.history);
  const tested = byCase((index.analysis && index.analysis.cases) || index.decided);
  const decided = [...tested.values()].some((one) => one.decision);
  const open = openGroups();
  const body = el("tbody", { id: "rows" });
  const end = el("div", { class: "table-end" });
  const rest = skButton("", () => unlimited(), { id: "more", class: "quiet" });
  const nothing = el(
    "p",
    { class: "nothing", id: "nothing", hidden: true },
    "No case matches this filter.",
  );
  const head = el("tr");
  const made = new Map();
  let shown = [];
  let drawn = 0;
  let limit = page.allRows ? Infinity : CHUNK;

  /* A group's row, and, where it is unfolded, those of its trials. */
  function rowsOf(group) {
    if (!made.has(group.key)) made.set(group.key, { row: groupRow(group, about), trials: null });
    const known = made.get(group.key);
    const unfolded = group.rows.length > 1 && open.has(group.key);
    if (unfolded && !known.trials) {
      const failed = group.rows.filter((row) => row.status !== "PASS");
      const reasons = new Set(failed.map((row) => row.reason)).size > 1;
      known.trials = new Map(group.rows.map((row) => [row.n, trialRow(row, { ...about, at: group.at }, reasons)]));
    }
    const trials = unfolded ? group.shown.map((row) => known.trials.get(row.n)) : [];
    for (const row of [known.row, ...trials]) {
      for (const link of row.querySelectorAll("a[data-to]"))
        link.setAttribute("href", trialAddress(link.dataset.to));
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
    announce(unfolded ? `${plural(trials.length, "trial")} shown below` : "Trials folded");
  }

  function more(number) {
    const next = shown.slice(drawn, Math.min(limit, drawn + number));
    drawn += next.length;
    body.append(...next.flatMap(rowsOf));
    end.hidden = drawn >= Math.min(limit, shown.length);
    rest.hidden = drawn < limit || drawn >= shown.length;
    rest.textContent = `Show ${count(shown.length - drawn)} more`;
  }

  function unlimited() {
    limit = Infinity;
    page.allRows = true;
    const first = drawn;
    more(CHUNK);
    const row = [...body.querySelectorAll("tr:not(.trial)")][first];
    if (row) row.querySelector("a").focus({ preventScroll: true });
  }

  function draw() {
    shown = shownGroups(groups, page.filter);
    page.order = shown.flatMap((group) => group.shown);
    drawn = 0;
    body.replaceChildren();
    more(CHUNK);
    replace(
      head,
      columns.map((key) => headCell(key, key === "turns" && several ? "Trials" : NAMES[key], draw)),
    );
    nothing.hidden = shown.length > 0;
    const { status } = page.filter;
    const filtered = ["q", "deep", "status", "tag", "engine", "variant", "suite"];
    document.getElementById("clear").hidden = !filtered.some((key) => page.filter[key]);
    document.getElementById("order").setAttribute("aria-pressed", String(page.filter.sort === "plan"));
    const all = index.rows.filter((row) => row.status !== "NOT_NEEDED" || matches(row, { status }));
    const text = counted(page.order.length, all.length, shown, groups);
    document.getElementById("shown").value = text;
    announce(text + " shown");
  }

  /* The filter has changed: with `deep`, the conversations have to be read first. */
  async function changed() {
    draw();
    if (!page.filter.deep || !page.filter.q) return;
    const told = (done, all) => {
      const output = document.getElementById("shown");
      if (output) output.value = `reading conversations, ${count(done)} of ${count(all)}`;
    };
    if ((await readConversations(index.rows, told)) && body.isConnected) draw();
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

  page.drawAll = () => {
    limit = Infinity;
    more(Infinity);
  };
  page.moveRow = function (step) {
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
  page.foldRow = function (unfolded) {
    const row = document.activeElement && document.activeElement.closest("#rows tr");
    if (!row) return;
    const { key } = groups[Number(row.dataset.group)];
    if (!unfolded && row.classList.contains("trial")) focusRow(made.get(key).row, "nearest");
    fold(key, unfolded);
  };
  /* The row of a trial, with the focus; `unfolded`: that of its case, with its trials below. */
  page.showTrial = function (n, unfolded) {
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
  return el(
    "section",
    { class: "cases", id: "cases", "aria-labelledby": "cases-title" },
    el(
      "div",
      { class: "cases-head" },
      el("h2", { id: "cases-title" }, "Conversations"),
      el("output", { id: "shown", for: "filter-text", class: "shown" }),
    ),
    filterBar(index.rows, changed),
    el(
      "table",
      { class: "cases-table" + (several ? " grouped" : "") + (decided ? " decided" : "") },
      el("caption", { class: "visually-hidden" }, "Every case; its name opens the conversation"),
      el("thead", {}, head),
      body,
    ),
    nothing,
    end,
    rest,
  );
}

function focusRow(row, block) {
  if (!row) return;
  row.querySelector("a").focus({ preventScroll: true });
  row.scrollIntoView({ block });
}

/* Which groups are unfolded, kept while the page shows this run. */
function openGroups() {
  const run = page.runId || "";
  if (!page.unfolded || page.unfolded.run !== run) page.unfolded = { run, keys: new Set() };
  return page.unfolded.keys;
}

/* Those that say anything: one engine is named above, and what no trial tells is left out. */
function columnsOf(rows) {
  const needless = {
    engine: new Set(rows.map((row) => row.engine)).size < 2,
    tokens: !rows.some((row) => skKnown(row.tokens)),
    cost: !rows.some((row) => skKnown(row.cost_usd)),
  };
  return Object.keys(NAMES).filter((key) => !needless[key]);
}

/* "12 trials, 3 cases in 6 lines": of the groups that are shown, and of all. */
function counted(trials, allTrials, shown, groups) {
  const some =
    trials === allTrials
      ? plural(trials, "trial")
      : `${count(trials)} of ${plural(allTrials, "trial")}`;
  const cases = casesOf(shown.map((group) => group.rows[0]));
  const lines = casesOf(groups.map((group) => group.rows[0])) < groups.length;
  if (groups.length === allTrials && !lines) return some;
  return `${some}, ${plural(cases, "case")}` + (lines ? ` in ${plural(shown.length, "line")}` : "");
}

function headCell(key, name, draw) {
  const sort = page.filter.sort || "";
  const direction = sort === key ? "ascending" : sort === "-" + key ? "descending" : null;
  return el(
    "th",
    { scope: "col", class: "column-" + key, "aria-sort": direction },
    skButton(
      [
        name,
        el(
          "span",
          { class: "sort", "aria-hidden": "true" },
          direction === "ascending" ? " ↑" : direction === "descending" ? " ↓" : "",
        ),
      ],
      () => {
        setFilter({ sort: sort === key ? "-" + key : sort === "-" + key ? null : key });
        draw();
        document.querySelector(`.column-${key} button`).focus();
      },
      { class: "column", title: "Sort by " + name.toLowerCase() },
    ),
  );
}
