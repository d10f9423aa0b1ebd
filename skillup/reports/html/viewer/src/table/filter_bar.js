/* The filter above the table: words, statuses, and what else the rows differ by. */
import { chip as skChip } from "./filter_bar.js";
import { button as skButton, el, plain } from "../dom.js";
import { count } from "../format.js";
import { redraw } from "../live/live.js";
import { setFilter } from "../route.js";
import { STATUS, page } from "../state.js";
import { tally } from "../summary/summary.js";
import { casesOf } from "./groups.js";
import { statusSign } from "./rows.js";

const CHOICES = [
  ["suite", "All suites"],
  ["engine", "All engines"],
  ["variant", "With and without"],
  ["tag", "All tags"],
];
const VARIANT = { with_skill: "with the skill", without_skill: "without the skill" };

/* `changed` is called after every change of the filter. */
export function filterBar(rows, changed) {
  const filter = page.filter;
  const text = el("input", {
    id: "filter-text",
    type: "search",
    placeholder: "Case, title, tag, reason; -not",
    title:
      "Words that must all be in a case's id, title, tags, suite, engine, or the reason why it failed; " +
      "a word after - must not be there",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Filter cases by words",
    "aria-keyshortcuts": "/",
    "aria-controls": "rows",
    value: filter.q || "",
    on: {
      input: () => {
        setFilter({ q: text.value.trim() });
        changed();
      },
    },
  });
  return el(
    "div",
    { class: "filter", role: "search" },
    text,
    deep(changed),
    el("div", { class: "chips", role: "group", "aria-label": "Status" }, chips(rows, changed)),
    CHOICES.map(([key, all]) => choice(rows, key, all, changed)),
    order(changed),
    skButton(
      "Clear",
      () => {
        setFilter({ q: null, deep: null, status: null, tag: null, engine: null, variant: null, suite: null });
        redraw();
        document.getElementById("filter-text").focus();
      },
      { id: "clear", class: "quiet" },
    ),
  );
}

/* Whether the words are looked for in the conversations, too. */
function deep(changed) {
  const box = el("input", {
    id: "filter-deep",
    type: "checkbox",
    checked: Boolean(page.filter.deep),
    on: {
      change: () => {
        setFilter({ deep: box.checked ? "1" : null });
        changed();
      },
    },
  });
  return el(
    "label",
    { class: "deep", title: "Look for the words in messages, answers and tool calls, too" },
    box,
    " in conversations",
  );
}

/* What failed first, or as planned; a column's head outranks both. */
function order(changed) {
  const button = skButton(
    "As planned",
    () => {
      setFilter({ sort: page.filter.sort === "plan" ? null : "plan" });
      changed();
    },
    { id: "order", class: "chip", title: "In the order of the suite, instead of what failed first" },
  );
  return button;
}

function chips(rows, changed) {
  const counts = tally(rows);
  const flaky = casesOf(rows.filter((row) => row.flaky));
  const all = Object.keys(STATUS)
    .filter((status) => counts[status])
    .map((status) => [status, STATUS[status].word, counts[status]]);
  // Of cases, and beside the others, which are all trials together.
  if (flaky) all.push(["FLAKY", flaky === 1 ? "flaky case" : "flaky cases", flaky]);
  return all.map(([status, word, number]) => {
    const label = [
      statusSign(status),
      " ",
      word + " ",
      el("span", { class: "chip-count" }, count(number)),
    ];
    return skChip("status", status, label, status, changed);
  });
}

/* A button that puts a value into the filter `key`, among others there, or takes it out again. */
export function chip(key, value, label, status, changed) {
  const chosen = () => new Set((page.filter[key] || "").split(",").filter(Boolean));
  const chip = skButton(
    label,
    () => {
      const values = chosen();
      if (!values.delete(value)) values.add(value);
      setFilter({ [key]: [...values].join(",") || null });
      chip.setAttribute("aria-pressed", String(values.has(value)));
      changed();
    },
    {
      class: "chip status-" + status,
      "aria-pressed": String(chosen().has(value)),
      ["data-" + key]: value,
    },
  );
  return chip;
}

function choice(rows, key, all, changed) {
  const values = [...new Set(rows.flatMap((row) => (key === "tag" ? row.tags || [] : [row[key]])))].sort();
  if (values.length < (key === "tag" ? 1 : 2)) return null;
  const select = el(
    "select",
    {
      "aria-label": all,
      id: "filter-" + key,
      on: {
        change: () => {
          setFilter({ [key]: select.value || null });
          changed();
        },
      },
    },
    el("option", { value: "" }, all),
    values.map((value) => option(key, value)),
  );
  select.value = page.filter[key] || "";
  return select;
}

/* An option's value is kept as it is, also where it holds characters that are not shown. */
function option(key, value) {
  const node = document.createElement("option");
  node.value = value;
  node.textContent = plain(key === "variant" ? VARIANT[value] || value : value);
  return node;
}
