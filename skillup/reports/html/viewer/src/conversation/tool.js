/* A tool call: one line that says what it did, which opens to its arguments and its result. */
import { el, fold } from "../dom.js";
import { duration } from "../format.js";
import { KIND_SIGN } from "../state.js";
import { diff as skDiff, replacement } from "../text/diff.js";
import { holding, opensFor, textBlock } from "../text/text.js";

/* The argument that says most, by what tools call it. */
const MAIN = [
  "command",
  "cmd",
  "file_path",
  "path",
  "notebook_path",
  "pattern",
  "query",
  "url",
  "skill",
  "name",
  "description",
  "prompt",
];

export function mainArgument(item) {
  const given = item.arguments || {};
  for (const key of MAIN) {
    const value = given[key];
    if (typeof value === "string" && value) return value;
    if (Array.isArray(value) && value.length && value.every((one) => typeof one === "string"))
      return value.join(" ");
  }
  const text = Object.keys(given).length ? JSON.stringify(given) : "";
  return text.slice(0, 300);
}

/* Where trials have their workspace: of a path in there, what follows is enough. */
const WORKSPACE = /^\/(?:[^/]+\/)*skillup-[A-Za-z0-9_]+\/[^/]+\/workspace\/(?=.)/;

const RESULT = {
  success: ["✓", "succeeded", "PASS"],
  error: ["✗", "failed", "FAIL"],
  unknown: ["·", "ended", "SKIP"],
};

/* `ranges`: places in its result or its arguments to be marked; one without extent means all of it. */
export function tool(item, { ranges = [] } = {}) {
  const key =
    ranges
      .filter((one) => one.start === one.end)
      .flatMap((one) => one.marks)
      .join(" ") || null;
  const result = item.result;
  const [sign, word, status] = result
    ? RESULT[result.status] || RESULT.unknown
    : ["…", "no result", "SKIP"];
  const main = mainArgument(item).replace(/\s+/g, " ").trim();
  const summary = [
    el(
      "span",
      { class: "kind", title: item.kind, "aria-hidden": "true" },
      KIND_SIGN[item.kind] || "·",
    ),
    el("span", { class: "tool-name" }, item.name || item.kind),
    el(
      "code",
      { class: "tool-main", title: WORKSPACE.test(main) ? main.slice(0, 300) : null },
      main.replace(WORKSPACE, "").slice(0, 300),
    ),
    item.agent ? el("span", { class: "tag" }, "sub-agent ", item.agent) : null,
    item.duration_ms ? el("span", { class: "aside" }, duration(item.duration_ms)) : null,
    el(
      "span",
      { class: "sign status-" + status, title: word },
      el("span", { "aria-hidden": "true" }, sign),
      el("span", { class: "visually-hidden" }, " " + word),
    ),
  ];
  return fold(
    { class: "tool", "data-marks": key, ...holding(ranges) },
    summary,
    () => inside(item, ranges),
    opensFor(ranges),
  );
}

function inside(item, ranges) {
  const parts = el("div", { class: "tool-inside" });
  const given = { ...item.arguments };
  const edits = ranges.some((one) => one.part === "arguments") ? [] : takeEdits(given);
  for (const [name, value] of Object.entries(given)) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const here = ranges.filter((one) => one.part === "arguments" && one.argument === name);
    parts.append(
      el(
        "div",
        { class: "argument" },
        el("span", { class: "label" }, name),
        textBlock(text, { ranges: here, name: "code", markdown: false }),
      ),
    );
  }
  for (const [before, after] of edits)
    parts.append(
      el(
        "div",
        { class: "argument" },
        el("span", { class: "label" }, "edit"),
        replacement(before, after),
      ),
    );
  if (item.result) {
    const text = item.result.content || "";
    const here = ranges.filter((one) => one.part === "result");
    parts.append(
      el(
        "div",
        { class: "argument" },
        el("span", { class: "label" }, item.result.status === "error" ? "result (error)" : "result"),
        text === ""
          ? el("span", { class: "aside" }, "empty")
          : looksLikeDiff(text) && !here.length
            ? skDiff(text)
            : textBlock(text, { ranges: here, name: "code", markdown: false }),
      ),
    );
  } else parts.append(el("p", { class: "aside" }, "No result was reported."));
  if (item.id) parts.append(el("p", { class: "aside" }, "call ", el("code", {}, item.id)));
  return parts;
}

/* Pairs of old and new text, taken out of the arguments: [[before, after]]. */
function takeEdits(given) {
  const pair = (one) => one && typeof one.old_string === "string" && typeof one.new_string === "string";
  if (pair(given)) {
    const found = [[given.old_string, given.new_string]];
    delete given.old_string;
    delete given.new_string;
    return found;
  }
  if (Array.isArray(given.edits) && given.edits.length && given.edits.every(pair)) {
    const found = given.edits.map((one) => [one.old_string, one.new_string]);
    delete given.edits;
    return found;
  }
  return [];
}

function looksLikeDiff(text) {
  return (
    /^(diff --git |--- [^\n]*\n\+\+\+ |\*\*\* Begin Patch)/m.test(text.slice(0, 2000)) &&
    /^[+-]/m.test(text)
  );
}
