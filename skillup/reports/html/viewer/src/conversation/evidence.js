/* What checks that were not met come to, before anything is drawn: of a turn that could not be held
   they say nothing, and a gate that skips the rest of its case is no failure. What a gate that failed
   its case kept from being evaluated counts as failed, but nothing was found by it. */
import { markOfTurn } from "./turn.js";
import { plural } from "../format.js";

/* What a check says that was not asked, as the turn's gate had failed. */
const OF_GATE = [
  /^turn (\d{1,6}) failed: post-condition not met/,
  /^turn \d{1,6} was skipped: not sent: turn (\d{1,6}) failed its post-condition/,
];

/* Sets check.moot: null, "not evaluated" or "skips the rest"; and check.gate: the number of the turn
   whose gate kept it from being evaluated, or null. Gives `detail` back. */
export function settle(detail) {
  const status = (detail.grade || {}).status;
  const each = (checks, why) => {
    for (const check of checks || []) {
      each(check.children, why);
      check.gate = check.passed || check.error || status !== "FAIL" ? null : gateOf(check);
      check.moot = check.passed || check.error ? null : check.gate ? "not evaluated" : why(check);
    }
  };
  const gateOf = (check) => {
    if (check.assertable !== false) return null;
    const said = OF_GATE.map((pattern) => pattern.exec(check.found || "")).find(Boolean);
    return said ? Number(said[1]) : (check.children || []).map((one) => one.gate).find(Boolean) || null;
  };
  const unheld = (check) => (check.assertable === false ? "not evaluated" : null);
  for (const turn of detail.turns || []) {
    turn.unjudged = !detail.grade;
    for (const step of [turn, ...(turn.follow_ups || [])]) {
      const held = step.status !== "error" && step.status !== "skipped";
      each(step.checks, (check) => {
        if (!held) return "not evaluated";
        return status === "SKIP" && check.role === "post_condition" ? "skips the rest" : null;
      });
    }
  }
  each(detail.conversation_checks, (check) =>
    status === "ERROR" || status === "SKIP" || check.evaluated === false ? unheld(check) : null,
  );
  return detail;
}

/* Checks in words: "2 of 3 failed", "not evaluated", "1 of 3 failed; 2 checks not evaluated, and so
   failed". */
export function checksText(checks) {
  const failed = checks.filter((check) => !check.passed && !check.moot).length;
  const gated = checks.filter((check) => check.gate).length;
  const told = [
    failed ? `${failed} of ${checks.length} failed` : null,
    gated ? `${plural(gated, "check")} not evaluated, and so failed` : null,
  ].filter(Boolean);
  if (told.length) return told.join("; ");
  if (checks.some((check) => check.moot === "skips the rest")) return "not met: the rest is skipped";
  const moot = checks.filter((check) => check.moot).length;
  if (moot) return moot === checks.length ? "not evaluated" : `${moot} of ${checks.length} not evaluated`;
  return checks.length > 1 ? `all ${checks.length} passed` : "passed";
}

/* The part that decided: a turn's number, "end", or null where nothing failed. */
export function failedPart(detail) {
  const named = /^turn (\d{1,6}): /.exec((detail.grade || {}).reason || "");
  const numbers = detail.turns.map((turn) => turn.turn_number);
  if (named && numbers.includes(Number(named[1]))) return Number(named[1]);
  const bad = detail.turns.find((turn) => /FAIL|ERROR/.test(markOfTurn(turn).status));
  if (bad) return bad.turn_number;
  return (detail.conversation_checks || []).some((check) => !check.passed) ? "end" : null;
}

/* The sign of the checks of the whole conversation, like a turn's; null: there are none. */
export function markOfEnd(detail) {
  const checks = detail.conversation_checks || [];
  if (!checks.length) return null;
  if (checks.some((check) => !check.passed && !check.moot)) {
    const broken = checks.every((check) => check.passed || check.moot || check.error);
    return broken
      ? { sign: "!", word: "error", status: "ERROR" }
      : { sign: "✗", word: "failed", status: "FAIL" };
  }
  if (checks.some((check) => check.moot)) return { sign: "○", word: "not evaluated", status: "SKIP" };
  return { sign: "●", word: "passed", status: "PASS" };
}
