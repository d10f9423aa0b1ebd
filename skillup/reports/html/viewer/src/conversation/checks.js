/* Checks: passed or not, what was expected and found, and where it stands in the text. */
import { check as skCheck } from "./checks.js";
import { checksText } from "./evidence.js";
import { button, el, fold as skFold } from "../dom.js";
import { known, percent, score } from "../format.js";
import { showMark, textBlock } from "../text/text.js";

/* Gives every check with evidence a key, and says which texts it is in:
   Map of turn or follow-up → [{in, item, part, argument, start, end, class, marks, title}]. */
export function collectEvidence(detail) {
  const places = new Map();
  let count = 0;
  const byNumber = new Map(detail.turns.map((turn) => [turn.turn_number, turn]));
  function take(check) {
    const all = check.evidence ? [check.evidence, ...(check.evidence.more || [])] : [];
    check.key = null;
    for (const evidence of all) {
      const turn = byNumber.get(evidence.turn);
      const step = turn && known(evidence.follow_up) ? (turn.follow_ups || [])[evidence.follow_up] : turn;
      if (!step) continue;
      check.key = check.key || "check-" + ++count;
      places.set(step, [
        ...(places.get(step) || []),
        {
          ...evidence,
          marks: [check.key],
          class: "evidence " + (check.passed ? "evidence-passed" : "evidence-failed"),
          title: (check.passed ? "✓ " : "✗ ") + check.name,
        },
      ]);
    }
    for (const child of check.children || []) take(child);
  }
  for (const turn of detail.turns) {
    for (const step of [turn, ...(turn.follow_ups || [])]) (step.checks || []).forEach(take);
  }
  (detail.conversation_checks || []).forEach(take);
  return places;
}

function verdict(check) {
  if (check.error) return ["!", "error", "ERROR"];
  if (check.gate) return ["–", `not evaluated: the gate of turn ${check.gate} failed`, "SKIP"];
  if (check.moot) return [check.moot === "skips the rest" ? "○" : "–", check.moot, "SKIP"];
  if (check.assertable === false) return ["✗", "failed: nothing to look at", "FAIL"];
  return check.passed ? ["✓", "passed", "PASS"] : ["✗", "failed", "FAIL"];
}

const ROLE = {
  post_condition: "gate",
  expect: "expect",
  success: "success rule",
  failure: "failure rule",
  judge: "judge",
};

/* `root`: gives the conversation's element, in which evidence is looked for. */
export function checks(checks, title, root) {
  if (!checks || !checks.length) return null;
  return el(
    "section",
    { class: "checks", "aria-label": title },
    el(
      "h4",
      {},
      title,
      " ",
      el(
        "span",
        { class: "aside" },
        checksText(checks),
      ),
    ),
    el(
      "ul",
      {},
      checks.map((check) => el("li", {}, skCheck(check, root))),
    ),
  );
}

export function check(check, root) {
  const [sign, word, status] = verdict(check);
  const badges = [
    ROLE[check.role] || null,
    check.required ? "required" : null,
    known(check.weight) && check.weight !== 1 ? "weight " + score(check.weight) : null,
    known(check.score) && check.score > 0 && check.score < 1 ? "score " + score(check.score) : null,
    check.votes && check.votes.length > 1
      ? `${check.votes.length} votes` +
        (known(check.agreement) ? `, ${percent(check.agreement)} agree` : "")
      : null,
  ].filter(Boolean);
  const line = [
    el(
      "span",
      { class: "sign status-" + status, title: word },
      el("span", { "aria-hidden": "true" }, sign),
      el("span", { class: "visually-hidden" }, word + ": "),
    ),
    el("span", { class: "check-name" }, check.name || check.kind),
    badges.map((badge) => el("span", { class: "tag" }, badge)),
    check.gate ? el("span", { class: "why-not" }, word) : null,
  ];
  const more =
    [check.expected, check.found, check.excerpt, check.error, ...(check.notes || [])].some(Boolean) ||
    (check.votes || []).length ||
    (check.children || []).length ||
    check.key;
  if (!more) return el("div", { class: "check check-" + status }, line);
  const fold = skFold(
    { class: "check check-" + status, "data-marks": check.key || null },
    line,
    () => inside(check, root),
    (!check.passed && check.moot !== "not evaluated") || Boolean(check.error),
  );
  if (check.key) {
    fold.querySelector("summary").addEventListener("click", () => {
      if (!fold.open) showMark(root(), check.key);
    });
  }
  return fold;
}

/* An excerpt is one line, in which ⏎ stands for line ends: as it was. */
function excerpt(text) {
  if (!text) return null;
  const lines = String(text).replace(/⏎/g, "\n");
  const block = textBlock(lines, { name: "code excerpt", markdown: false });
  return [el("dt", {}, "excerpt"), el("dd", {}, block)];
}

function inside(check, root) {
  const inChanges = check.evidence && check.evidence.in === "changes";
  const line = (label, text) =>
    text
      ? [
          el("dt", {}, label),
          el("dd", {}, textBlock(String(text), { name: "plain-text", markdown: false })),
        ]
      : null;
  return el(
    "div",
    { class: "check-inside" },
    el(
      "dl",
      {},
      check.error ? line("could not be evaluated", check.error) : null,
      line("expected", check.expected),
      // After a failed gate it is the gate's, which says it itself.
      check.gate ? null : line("found", (check.found || "").replace(/^found /, "")),
      inChanges || !check.key ? excerpt(check.excerpt) : null,
      (check.notes || []).map((note) => line("note", note)),
      (check.votes || []).length > 1 ? line("votes", check.votes.map(score).join(", ")) : null,
      check.kind && check.kind !== check.name
        ? line("check", check.kind + (check.scope ? `, of ${check.scope}` : ""))
        : null,
    ),
    check.key
      ? button(inChanges ? "Show what changed" : "Show in the text", () => showMark(root(), check.key), { class: "show-evidence" })
      : null,
    (check.children || []).length
      ? el(
          "ul",
          {},
          check.children.map((child) => el("li", {}, skCheck(child, root))),
        )
      : null,
  );
}
