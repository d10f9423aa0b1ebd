/* Differences: of files, by line, with signs, so that colour is not all that tells; of edits; and
   which words and calls of two conversations differ. By jsdiff. */
import { diffArrays, diffLines } from "diff";
import type { Changes, Picture, Trial, Turn } from "../data";
import { turnMark, type Evident } from "../data";
import { Aside, Fold, Hidden } from "../dom";
import { count } from "./format";
import { Long, keysOf, opensFor, type Range } from "./text";

type Line = [kind: string, text: string];
const PLACE = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const OF_FILE = /^(diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename |\*\*\* )/;

const ofSign = (line: string) =>
  line[0] === "+" ? "diff-added" : line[0] === "-" ? "diff-removed" : "diff-same";

/* What each line is. Below its `@@` a part has so many lines of either file: there the sign alone
   tells, since `--- x` may be a deleted comment. */
export function diffKinds(text: string): Line[] {
  let [before, after] = [0, 0];
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line): Line => {
      if ((before > 0 || after > 0) && /^[-+ \\]|^$/.test(line)) {
        if (line[0] !== "+" && line[0] !== "\\") before--;
        if (line[0] !== "-" && line[0] !== "\\") after--;
        return [ofSign(line), line];
      }
      const place = PLACE.exec(line);
      [before, after] = place ? [Number(place[1] ?? 1), Number(place[2] ?? 1)] : [0, 0];
      if (line.startsWith("@@")) return ["diff-place", line];
      return [OF_FILE.test(line) ? "diff-file" : ofSign(line), line];
    });
}

/* Runs of lines of one kind are one element: a long diff stays cheap. */
export function Diff({ lines }: { lines: Line[] }) {
  const runs: Array<[string, string[]]> = [];
  for (const [kind, line] of lines) {
    const last = runs[runs.length - 1];
    if (last && last[0] === kind) last[1].push(line);
    else runs.push([kind, [line]]);
  }
  return (
    <Long text={lines.map(([, line]) => line).join("\n")}>
      <div class="text code diff">
        {runs.map(([kind, run]) => (
          <div class={kind}>{run.join("\n")}</div>
        ))}
      </div>
    </Long>
  );
}

/* An edit that a tool was asked to make. */
export function editLines(before: string, after: string): Line[] {
  return (
    diffLines(before, after, { maxEditLength: 5000, ignoreNewlineAtEof: true })?.flatMap((part) => {
      const sign = part.added ? "+" : part.removed ? "-" : " ";
      const lines = part.value.replace(/\n$/, "").split("\n");
      return lines.map((line): Line => [ofSign(sign), sign + line]);
    }) || []
  );
}

/* Pictures: from the data itself, never from an address; of pixels, no SVG, which is a document. */
const isShown = ({ type, data }: Picture) =>
  /^image\/(png|jpeg|gif|webp)$/.test(type || "") && /^[A-Za-z0-9+/]+=*$/.test(data || "");

function Figure({ image }: { image: Picture }) {
  const { path, size, type, width, height, data } = image;
  const shown = isShown(image);
  const measures = [
    width ? `${count(width)} × ${count(height)}` : null,
    `${count(Math.ceil(size / 1000))} kB`,
    shown ? null : "not shown here",
  ];
  return (
    <figure>
      {shown ? (
        <img
          src={`data:${type};base64,${data}`}
          alt={path}
          width={Number(width) || undefined}
          height={Number(height) || undefined}
          decoding="async"
        />
      ) : null}
      <figcaption>
        <code>{path}</code> <Aside>{measures.filter(Boolean).join(", ")}</Aside>
      </figcaption>
    </figure>
  );
}

const SIGNS = [
  ["added", "+"],
  ["modified", "±"],
  ["deleted", "−"],
] as const;

/* What a turn did to the workspace; `ranges`: of checks that look at files. */
export function WorkspaceChanges({ changes, ranges }: { changes: Changes; ranges: Evident[] }) {
  const parts = SIGNS.filter(([name]) => (changes[name] || []).length);
  if (!parts.length && !changes.diff) return null;
  const names = parts.flatMap(([name]) => changes[name]);
  const summary = (
    <>
      <span class="label">workspace</span>{" "}
      {parts.map(([name]) => `${changes[name].length} ${name}`).join(", ") || "changed"}
      <Aside> {names.slice(0, 3).join(", ")}</Aside>
    </>
  );
  const inside = () => (
    <div class="tool-inside">
      <ul class="plain">
        {parts.map(([name, sign]) =>
          changes[name].map((path) => (
            <li class={`file-${name}`}>
              <span aria-hidden="true">{sign} </span>
              <code>{path}</code>
              <Hidden text={` ${name}`} />
            </li>
          )),
        )}
      </ul>
      {changes.images?.length ? (
        <div class="images">
          {changes.images.map((image) => (
            <Figure image={image} />
          ))}
        </div>
      ) : null}
      {changes.diff ? <Diff lines={diffKinds(changes.diff)} /> : null}
    </div>
  );
  return (
    <Fold
      class="changes"
      data-marks={keysOf(ranges)}
      summary={summary}
      inside={inside}
      start={opensFor(ranges)}
    />
  );
}

/* Where a trial worked, as skillup/store names it: another place for each is no difference. */
const PLACE_OF_TRIAL = /(?:\/[^\s"'/:\\]+)*[/-]skillup-[a-z0-9_-]{8}[/-][0-9a-f]{12}(?![0-9a-f])/u;
const PLACES = new RegExp(PLACE_OF_TRIAL.source, "gu");
const WORD = new RegExp(
  PLACE_OF_TRIAL.source + String.raw`|\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]`,
  "gu",
);
const anywhere = (text: string) => text.replace(PLACES, "");

const wordsOf = (text: string) =>
  [...text.matchAll(WORD)].map((match) => ({
    text: /^\s/.test(match[0]) ? " " : anywhere(match[0]),
    start: match.index,
    end: match.index + match[0].length,
  }));
type Word = ReturnType<typeof wordsOf>[number];

const MOST_EDITS = 2000;

/* Places of words that only one of the two has: [in a, in b]; all, where the texts are too long for
   that. */
export function wordDifferences(a: string, b: string): [Range[], Range[]] {
  const [left, right] = [wordsOf(a), wordsOf(b)];
  const comparator = (x: Word, y: Word) => x.text === y.text;
  const parts = diffArrays(left, right, { comparator, maxEditLength: MOST_EDITS });
  const own = (words: Word[], other: "added" | "removed") => {
    const only = parts?.flatMap((part) =>
      part[other] ? [] : part.value.map(() => part.added || part.removed),
    );
    return places(words, (at) => only?.[at] ?? true);
  };
  return [own(left, "added"), own(right, "removed")];
}

/* Neighbouring words are one place; a space alone is none. */
function places(words: Word[], differs: (at: number) => boolean): Range[] {
  const found: Range[] = [];
  let open = false;
  words.forEach((word, at) => {
    if (word.text === " ") return;
    if (!differs(at)) open = false;
    else if (open) found[found.length - 1]!.end = word.end;
    else {
      found.push({
        start: word.start,
        end: word.end,
        class: "differs",
        title: "only on this side",
      });
      open = true;
    }
  });
  return found;
}

const callTexts = (turn: Turn) =>
  (turn.items || [])
    .filter((item) => item.type === "tool")
    .map((item) => `${item.name} ${anywhere(JSON.stringify(item.arguments || {}))}`)
    .join("\n");

/* What differs in two turns, in words; empty: nothing that tells them apart. */
export function turnDifferences(a: Turn | undefined, b: Turn | undefined): string[] {
  if (!a || !b) return ["only on one side"];
  const answer = (turn: Turn) => anywhere(turn.response || "").trim();
  return [
    anywhere(a.content) !== anywhere(b.content) ? "message" : "",
    callTexts(a) !== callTexts(b) ? "tool calls" : "",
    answer(a) !== answer(b) ? "answer" : "",
    turnMark(a).status !== turnMark(b).status ? "verdict" : "",
  ].filter(Boolean);
}

export interface TurnPair {
  number: number;
  turns: [Turn | undefined, Turn | undefined];
  what: string[]; // what differs
  words: [Range[], Range[]]; // of the answers
}

/* Two conversations, turn by turn; where there is only one, nothing differs. */
export function turnPairs(a: Trial | null, b: Trial | null): TurnPair[] {
  const length = Math.max(a?.turns.length || 0, b?.turns.length || 0);
  return Array.from({ length }, (_, at) => {
    const [left, right] = [a?.turns[at], b?.turns[at]];
    const both = left && right;
    return {
      number: at + 1,
      turns: [left, right],
      what: a && b ? turnDifferences(left, right) : [],
      words: both ? wordDifferences(left.response || "", right.response || "") : [[], []],
    };
  });
}
