/* The start page of `skillup view`: every run of a folder, newest first. */
import { button, el } from "../dom.js";
import { cost, count, duration, plural, time } from "../format.js";
import { setFilter } from "../route.js";
import { STATUS, page } from "../state.js";
import { statusSign } from "../table/rows.js";

const FIRST = 100; // lines; the others on request, so that a folder of thousands is quick to filter

export function runsPage(runs) {
  const lines = new Map(); // made once
  const rest = button("", () => showAll(), { id: "more", class: "quiet" });
  const body = el("tbody", { id: "rows" });
  const shown = el("output", { id: "shown", class: "shown" });
  const text = el("input", {
    id: "filter-text",
    type: "search",
    placeholder: "Filter runs",
    autocomplete: "off",
    "aria-label": "Filter runs by words",
    "aria-keyshortcuts": "/",
    value: page.filter.q || "",
    on: {
      input: () => {
        setFilter({ q: text.value.trim() });
        draw();
      },
    },
  });

  function draw() {
    const words = (page.filter.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    const found = runs.filter((run) => words.every((word) => haystack(run).includes(word)));
    const some = page.allRuns ? found : found.slice(0, FIRST);
    for (const run of some) if (!lines.has(run)) lines.set(run, line(run));
    body.replaceChildren(...some.map((run) => lines.get(run)));
    rest.hidden = some.length === found.length;
    rest.textContent = `Show ${count(found.length - some.length)} more`;
    shown.value =
      found.length === runs.length
        ? plural(runs.length, "run")
        : `${found.length} of ${plural(runs.length, "run")}`;
  }
  const allLinks = () => [...body.querySelectorAll("a.case-link")];
  page.drawAll = function () {
    page.allRuns = true;
    draw();
  };
  function showAll() {
    const first = allLinks().length;
    page.drawAll();
    allLinks()[first].focus({ preventScroll: true });
  }
  page.moveRow = function (step) {
    let links = allLinks();
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    if (at + step >= links.length && !rest.hidden) {
      page.drawAll();
      links = allLinks();
    }
    const target = links[at < 0 ? 0 : Math.max(0, Math.min(links.length - 1, at + step))];
    if (target) target.focus();
  };
  page.keys = [
    ["/", "filter", () => text.focus()],
    ["j ArrowDown", "next run", () => page.moveRow(1)],
    ["k ArrowUp", "previous run", () => page.moveRow(-1)],
  ];
  draw();
  document.title = "Runs · skillup";
  return el(
    "section",
    { class: "cases" },
    el("h1", {}, "Runs"),
    runs.length
      ? null
      : el(
          "p",
          { class: "notice" },
          "There is no run here yet. ",
          el("code", {}, "skillup run"),
          " makes one.",
        ),
    el("div", { class: "filter", role: "search" }, text, shown),
    el(
      "table",
      { class: "cases-table runs-table" },
      el("caption", { class: "visually-hidden" }, "All runs, newest first"),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["Started", "Run", "Suites", "Engines", "Result", "Time", "Cost"].map((name) =>
            el("th", { scope: "col" }, name),
          ),
        ),
      ),
      body,
    ),
    rest,
  );
}

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
      ? ` ${count(run.done)} of ${count(run.planned)}`
      : "";
  return el(
    "tr",
    { "data-run": run.id },
    el("td", {}, time(run.started_at)),
    el(
      "th",
      { scope: "row" },
      el("a", { class: "case-link", href: "#/run/" + encodeURIComponent(run.id) + "/" }, run.id),
      " ",
      word ? el("span", { class: name }, word + far) : null,
      run.problem ? el("span", { class: "reason" }, run.problem) : null,
    ),
    el("td", {}, run.suites.join(", ")),
    el("td", {}, run.engines.join(", ")),
    el(
      "td",
      {},
      el(
        "span",
        { class: "run-counts" },
        counts.map(([status, number]) =>
          el(
            "span",
            { class: "status status-" + status, title: STATUS[status].word },
            statusSign(status),
            " ",
            count(number),
            el("span", { class: "visually-hidden" }, " " + STATUS[status].word),
          ),
        ),
      ),
    ),
    el("td", { class: "number" }, duration(run.duration_ms)),
    el("td", { class: "number" }, cost(run.cost_usd)),
  );
}
