/* What checks that were not met come to, before anything is drawn: of a turn that could not be held
   they say nothing, and a gate that skips the rest of its case is no failure. */
(function () {
  /* Sets check.moot: null, "not evaluated" or "skips the rest". Gives `detail` back. */
  SK.settle = function (detail) {
    const status = (detail.grade || {}).status;
    const each = (checks, why) => {
      for (const check of checks || []) {
        check.moot = check.passed || check.error ? null : why(check);
        each(check.children, why);
      }
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
      status === "ERROR" || status === "SKIP" ? unheld(check) : null,
    );
    return detail;
  };

  /* Checks in words: "2 of 3 failed", "not evaluated". */
  SK.checksText = function (checks) {
    const failed = checks.filter((check) => !check.passed && !check.moot).length;
    if (failed) return `${failed} of ${checks.length} failed`;
    if (checks.some((check) => check.moot === "skips the rest")) return "not met: the rest is skipped";
    const moot = checks.filter((check) => check.moot).length;
    if (moot) return moot === checks.length ? "not evaluated" : `${moot} of ${checks.length} not evaluated`;
    return checks.length > 1 ? `all ${checks.length} passed` : "passed";
  };

  /* The part that decided: a turn's number, "end", or null where nothing failed. */
  SK.failedPart = function (detail) {
    const named = /^turn (\d{1,6}): /.exec((detail.grade || {}).reason || "");
    const numbers = detail.turns.map((turn) => turn.turn_number);
    if (named && numbers.includes(Number(named[1]))) return Number(named[1]);
    const bad = detail.turns.find((turn) => /FAIL|ERROR/.test(SK.markOfTurn(turn).status));
    if (bad) return bad.turn_number;
    return (detail.conversation_checks || []).some((check) => !check.passed) ? "end" : null;
  };

  /* The sign of the checks of the whole conversation, like a turn's; null: there are none. */
  SK.markOfEnd = function (detail) {
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
  };
})();
