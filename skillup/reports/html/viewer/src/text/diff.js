/* Differences: a unified diff by line, with its signs kept, so that colour is not all that tells. */
import { diff as skDiff } from "./diff.js";
import { el, fold } from "../dom.js";
import { images as skImages, isShownImage } from "./images.js";
import { folded, holding, opensFor } from "./text.js";

const PLACE = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const SIGNED = /^[-+ \\]|^$/;

/* What each line is. Below its `@@` a part has so many lines of either file: there the sign alone
   tells, since `--- x` may be a deleted comment. `bare`: there is nothing but signed lines. */
function kinds(lines, bare) {
  let [before, after] = bare ? [Infinity, Infinity] : [0, 0];
  return lines.map((line) => {
    if (bare || ((before > 0 || after > 0) && SIGNED.test(line))) {
      if (line[0] !== "+" && line[0] !== "\\") before--;
      if (line[0] !== "-" && line[0] !== "\\") after--;
      return line[0] === "+" ? "diff-added" : line[0] === "-" ? "diff-removed" : "diff-same";
    }
    const place = PLACE.exec(line);
    [before, after] = place ? [Number(place[1] ?? 1), Number(place[2] ?? 1)] : [0, 0];
    if (line.startsWith("@@")) return "diff-place";
    if (/^(diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename |\*\*\* )/.test(line))
      return "diff-file";
    if (line.startsWith("+")) return "diff-added";
    return line.startsWith("-") ? "diff-removed" : "diff-same";
  });
}

export function diff(text, bare = false) {
  const lines = text.replace(/\n$/, "").split("\n");
  const kind = kinds(lines, bare);
  const body = el("div", { class: "text code diff" });
  // Runs of lines of one kind are one element: a long diff stays cheap.
  let at = 0;
  while (at < lines.length) {
    const name = kind[at];
    let end = at + 1;
    while (end < lines.length && kind[end] === name) end++;
    body.append(el("div", { class: name, text: lines.slice(at, end).join("\n") }));
    at = end;
  }
  return folded(body, text);
}

/* An edit that a tool was asked to make. */
export function replacement(before, after) {
  const signed = (sign, text) => (text === "" ? [] : text.split("\n").map((line) => sign + line));
  return skDiff([...signed("-", before), ...signed("+", after)].join("\n"), true);
}

/* A diff of several files, cut where each begins: [{path | null, text}]. */
function byFile(text) {
  const parts = [];
  let head = false; // after a line "diff …": the names that follow are of the same file
  const lines = text.replace(/\n$/, "").split("\n");
  const kind = kinds(lines, false);
  lines.forEach((line, at) => {
    const names = kind[at] === "diff-file" && /^--- /.test(line) && /^\+\+\+ /.test(lines[at + 1] || "");
    const begins = line.startsWith("diff ");
    if (begins || (names && !head) || !parts.length) parts.push([]);
    head = begins || (head && !names);
    parts[parts.length - 1].push(line);
  });
  return parts.map((part) => ({ lines: part, text: part.join("\n") }));
}

/* Whether a file's diff is that of `path`: by the names in its first lines. */
const isOf = (part, path) =>
  part.lines
    .slice(0, 6)
    .some((line) => /^(---|\+\+\+|diff|Binary) /.test(line) && (line + " ").includes("/" + path + " "));

const UNSHOWN = /^\[.* → .*; not shown: binary, large or not kept\]$/;

/* The diff without what it says of pictures that are shown: that they cannot be. */
function withoutPictures(text, images) {
  const shown = (images || []).filter(isShownImage).map((image) => image.path);
  if (!shown.length) return text;
  return byFile(text)
    .filter(
      (part) =>
        !(part.lines.some((line) => UNSHOWN.test(line)) && shown.some((path) => isOf(part, path))),
    )
    .map((part) => part.text)
    .join("\n");
}

/* The diff, a block for each file where checks asked for one: `ranges` have its `path`. */
function fileDiffs(text, ranges) {
  if (!ranges.some((one) => one.path)) return skDiff(text);
  const parts = byFile(text).map((part) => [part, ranges.filter((one) => one.path && isOf(part, one.path))]);
  return el(
    "div",
    { class: "file-diffs" },
    parts.map(([part, here]) =>
      el(
        "div",
        {
          class: here.length ? ["wanted-file", ...new Set(here.map((one) => one.class))].join(" ") : null,
          "data-marks": here.flatMap((one) => one.marks).join(" ") || null,
        },
        skDiff(part.text),
      ),
    ),
  );
}

/* What a turn did to the workspace; `ranges`: the files that checks asked for, or null for all. */
export function changes(changes, ranges = []) {
  const parts = [
    ["added", "+"],
    ["modified", "±"],
    ["deleted", "−"],
  ].filter(([name]) => (changes[name] || []).length);
  if (!parts.length && !changes.diff) return null;
  const diff = withoutPictures(changes.diff || "", changes.images);
  const words = parts.map(([name]) => `${changes[name].length} ${name}`).join(", ");
  const first = parts
    .flatMap(([name]) => changes[name])
    .slice(0, 3)
    .join(", ");
  return fold(
    {
      class: "changes",
      "data-marks":
        ranges
          .filter((one) => !one.path || !isShown(diff, one.path))
          .flatMap((one) => one.marks)
          .join(" ") || null,
      ...holding(ranges),
    },
    [
      el("span", { class: "label" }, "workspace"),
      " ",
      words || "changed",
      el("span", { class: "aside" }, " " + first),
    ],
    () =>
      el(
        "div",
        { class: "tool-inside" },
        el(
          "ul",
          { class: "plain files" },
          parts.flatMap(([name, sign]) =>
            changes[name].map((path) =>
              el(
                "li",
                { class: "file-" + name },
                el("span", { "aria-hidden": "true" }, sign + " "),
                el("code", {}, path),
                el("span", { class: "visually-hidden" }, " " + name),
              ),
            ),
          ),
        ),
        skImages(changes.images),
        diff ? fileDiffs(diff, ranges) : null,
      ),
    opensFor(ranges),
  );
}

const isShown = (diff, path) => byFile(diff).some((part) => isOf(part, path));
