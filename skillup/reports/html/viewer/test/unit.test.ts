/* The page's pure functions: texts and their places, differences, Markdown, addresses, numbers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../dist/types";
import type { Turn } from "../src/data";
import { diffKinds, editLines, turnDifferences, wordDifferences } from "../src/text/diff";
import { duration, percent, tokenText } from "../src/text/format";
import { parseMarkdown, type Drawn } from "../src/text/markdown";
import { filterOf, matches, parseRoute, sorted, groupsOf } from "../src/state";

const PLACE = "/tmp/skillup-ab12_xyz/0123456789ab";
const OTHER = "/private/tmp/skillup-qq99zzzz/ba9876543210";

test("words that only one of two texts has", () => {
  const many = (sign: string) => Array.from({ length: 4000 }, (_, n) => sign + n).join(" ");
  const table: Array<[string, string, string[], string[]]> = [
    ["Released 1.2", "Cut 1.2", ["Released"], ["Cut"]],
    ["one two three", "one three", ["two"], []],
    ["", "new words here", [], ["new words here"]],
    ["same", "same", [], []],
    ["a\n\nb", "a b", [], []],
    ["x 😀 y", "x 😁 y", ["😀"], ["😁"]],
    ["a b c d e", "a X c Y e", ["b", "d"], ["X", "Y"]],
    [`In ${PLACE}/workspace/a.md`, `In ${OTHER}/workspace/b.md`, ["a"], ["b"]],
    [many("a"), many("b"), [many("a")], [many("b")]], // too long to compare
  ];
  for (const [a, b, ofA, ofB] of table) {
    const [inA, inB] = wordDifferences(a, b);
    assert.deepEqual(inA.map((one) => a.slice(one.start, one.end)), ofA);
    assert.deepEqual(inB.map((one) => b.slice(one.start, one.end)), ofB);
  }
});

test("the directory of a trial is no difference (V20)", () => {
  const turn = (place: string) =>
    ({
      content: `Read ${place}/workspace/n.txt`,
      response: `See ${place}/workspace.`,
      checks: [],
      items: [{ type: "tool", name: "Read", arguments: { path: `${place}/workspace/n` } }],
    }) as unknown as Turn;
  assert.deepEqual(turnDifferences(turn(PLACE), turn(OTHER)), []);
  const found = turnDifferences(turn(PLACE), turn("/home/ada"));
  assert.deepEqual(found, ["message", "tool calls", "answer"]);
});

test("a deleted comment is no head of a file (F18)", () => {
  const part = " select 1\n--- old\n+++ new\n from t\n";
  const text = `--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,3 @@\n${part}--- a/z\n`;
  const kinds = diffKinds(text).map(([kind]) => kind.replace("diff-", ""));
  assert.deepEqual(kinds, ["file", "file", "place", "same", "removed", "added", "same", "file"]);
  const edit = editLines("a\nb\nc", "a\nB\nc").map(([, line]) => line);
  assert.deepEqual(edit, [" a", "-b", "+B", " c"]);
});

/* What is shown of the nodes, places in brackets: all of it must be the text's own. */
const shown = (text: string, nodes: Drawn[]): string =>
  nodes
    .map((node) => {
      if (typeof node === "string") return node;
      if (!("tag" in node)) return text.slice(node.start, node.end);
      return `<${node.tag}${node.href ? ` ${node.href}` : ""}>${shown(text, node.children)}</>`;
    })
    .join("");

test("Markdown is read as places in the text", () => {
  const table: Array<[string, string | null]> = [
    ["Hello - you.\nIt is 5 > 3, no?", null],
    ["## Release **notes**", "<div>Release <strong>notes</></>"],
    ["a *b* `c` 2 * 3 snake_case_x", "<p>a <em>b</> <code>c</> 2 * 3 snake_case_x</>"],
    ["3. x\n7. y\n   - `z`", "<ol><li><p>x</></><li><p>y</><ul><li><p><code>z</></></></></></>"],
    ["> a\n> b **c**", "<blockquote><p>a\nb <strong>c</></></>"],
    ["```js\n*x*\n\n# y", "<div><span>js</><pre><code>*x*\n\n# y</></></>"],
    ["[d](https://e.com/a_b)", "<p><span>d (<a https://e.com/a_b>https://e.com/a_b</>)</></>"],
    ["[a](javascript:alert(1))", "<p><span>a (<code>javascript:alert(1)</>)</></>"],
    ["[c](http://g@evil.example/)", "<p><span>c (<code>http://g@evil.example/</>)</></>"],
    ["<b>x</b> &amp; \\*y\\*  **z**", "<p><b>x</b> &amp; *y*  <strong>z</></>"],
  ];
  for (const [text, expected] of table) {
    const nodes = parseMarkdown(text);
    assert.equal(nodes && shown(text, nodes), expected);
  }
});

test("no text takes Markdown's reader long", () => {
  const began = performance.now();
  const times = (number: number, ...parts: string[]) => parts.map((part) => part.repeat(number));
  const long = times(3000, "> ", "- ", "`").map((text) => `${text}x`);
  long.push(...times(7000, "**", "[", "[a](", "!["), "~".repeat(29000) + "`");
  for (const row of ["", "|-"]) long.push(`a|b\n${row}${" ".repeat(28000)}x-|`);
  long.push("* * *\n- - -\n_ _ _\n".repeat(200) + "*a **b *c **d ".repeat(300));
  for (const text of long) parseMarkdown(text);
  assert.ok(performance.now() - began < 20_000);
});

test("an address says what is shown, whatever it holds", () => {
  const route = parseRoute("#/run/a%2Fb/trial/12/with/15/turn/3?q=x&go=1");
  const { runId, page, n, other, turn } = route;
  assert.deepEqual([runId, page, n, other, turn], ["a/b", "compare", 12, 15, 3]);
  assert.deepEqual(filterOf(route.query), { q: "x" });
  assert.equal(parseRoute("#/trial/<script>/turn/x").n, null);
  assert.equal(parseRoute("#/trial/1/turn/end").turn, "end");
  assert.equal(parseRoute("#/%E0%A4%A").page, "table");
});

test("rows are filtered and sorted", () => {
  const same = { suite: "s", engine: "e", variant: "v", tags: ["t"], turns: [] };
  const row = (n: number, status: string, case_id: string) =>
    ({ ...same, n, status, case_id }) as unknown as Row;
  const rows = [row(1, "PASS", "a"), row(2, "FAIL", "b"), row(3, "NOT_NEEDED", "c")];
  const found = (filter: Record<string, string>) =>
    rows.filter((one) => matches(one, filter, () => "said")).map((one) => one.n);
  assert.deepEqual(found({}), [1, 2]);
  assert.deepEqual(found({ status: "FAIL,NOT_NEEDED" }), [2, 3]);
  assert.deepEqual(found({ q: "-b" }), [1]);
  assert.deepEqual(found({ q: "said", deep: "1" }), [1, 2]);
  const order = (sort: string) =>
    sorted(groupsOf(rows), sort).map((group) => group.rows[0]!.case_id);
  assert.deepEqual(order("-case"), ["c", "b", "a"]);
  assert.deepEqual(order("__proto__"), ["b", "a", "c"]);
});

test("a case is as bad as on its worst engine; a failure without the skill is none", () => {
  const row = (n: number, status: string, engine: string, variant = "with_skill") =>
    ({ suite: "s", case_id: "a", turns: [], n, status, engine, variant }) as unknown as Row;
  const [failed] = groupsOf([row(1, "PASS", "e"), row(2, "FAIL", "f"), row(3, "PASS", "e")]);
  assert.deepEqual([failed!.status, failed!.telling.n], ["FAIL", 2]);
  const named = failed!.sides.map((side) => side.rows.map((one) => one.n));
  assert.deepEqual(named, [[1, 3], [2]]);
  const eight = groupsOf([..."abcdefgh"].map((engine, n) => row(n, "PASS", engine)));
  assert.deepEqual([eight.length, eight[0]!.sides.length], [1, 8]);
  const [passed] = groupsOf([row(1, "PASS", "e"), row(2, "FAIL", "e", "without_skill")]);
  assert.equal(passed!.status, "PASS");
});

test("numbers are rounded into the next unit, and never to all or nothing", () => {
  const times = [999.6, 59700, 3599600].map((one) => duration(one).replaceAll("\u202f", " "));
  assert.deepEqual(times, ["1.0 s", "1 min 0 s", "1 h 0 min"]);
  assert.equal(tokenText(999600), "1.0\u202fM");
  assert.deepEqual([percent(0.999), percent(0.001)], ["99\u202f%", "1\u202f%"]);
});
