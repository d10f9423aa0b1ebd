/* Checks: passed or not, what was expected and found, and where it stands in the text. */
(function () {
  /* Gives every check with evidence a key, and says which texts it is in:
     Map of turn or follow-up → [{in, item, part, argument, start, end, class, marks, title}]. */
  SK.collectEvidence = function (detail) {
    const places = new Map();
    let count = 0;
    const byNumber = new Map(detail.turns.map((turn) => [turn.turn_number, turn]));
    function take(check) {
      const all = check.evidence ? [check.evidence, ...(check.evidence.more || [])] : [];
      check.key = null;
      for (const evidence of all) {
        const turn = byNumber.get(evidence.turn);
        const step = turn && SK.known(evidence.follow_up) ? (turn.follow_ups || [])[evidence.follow_up] : turn;
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
  };

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
  SK.checks = function (checks, title, root) {
    if (!checks || !checks.length) return null;
    return SK.el(
      "section",
      { class: "checks", "aria-label": title },
      SK.el(
        "h4",
        {},
        title,
        " ",
        SK.el(
          "span",
          { class: "aside" },
          SK.checksText(checks),
        ),
      ),
      SK.el(
        "ul",
        {},
        checks.map((check) => SK.el("li", {}, SK.check(check, root))),
      ),
    );
  };

  SK.check = function (check, root) {
    const [sign, word, status] = verdict(check);
    const badges = [
      ROLE[check.role] || null,
      check.required ? "required" : null,
      SK.known(check.weight) && check.weight !== 1 ? "weight " + SK.score(check.weight) : null,
      SK.known(check.score) && check.score > 0 && check.score < 1 ? "score " + SK.score(check.score) : null,
      check.votes && check.votes.length > 1
        ? `${check.votes.length} votes` +
          (SK.known(check.agreement) ? `, ${SK.percent(check.agreement)} agree` : "")
        : null,
    ].filter(Boolean);
    const line = [
      SK.el(
        "span",
        { class: "sign status-" + status, title: word },
        SK.el("span", { "aria-hidden": "true" }, sign),
        SK.el("span", { class: "visually-hidden" }, word + ": "),
      ),
      SK.el("span", { class: "check-name" }, check.name || check.kind),
      badges.map((badge) => SK.el("span", { class: "tag" }, badge)),
      check.gate ? SK.el("span", { class: "why-not" }, word) : null,
    ];
    const more =
      [check.expected, check.found, check.excerpt, check.error, ...(check.notes || [])].some(Boolean) ||
      (check.votes || []).length ||
      (check.children || []).length ||
      check.key;
    if (!more) return SK.el("div", { class: "check check-" + status }, line);
    const fold = SK.fold(
      { class: "check check-" + status, "data-marks": check.key || null },
      line,
      () => inside(check, root),
      (!check.passed && check.moot !== "not evaluated") || Boolean(check.error),
    );
    if (check.key) {
      fold.querySelector("summary").addEventListener("click", () => {
        if (!fold.open) SK.showMark(root(), check.key);
      });
    }
    return fold;
  };

  /* An excerpt is one line, in which ⏎ stands for line ends: as it was. */
  function excerpt(text) {
    if (!text) return null;
    const lines = String(text).replace(/⏎/g, "\n");
    const block = SK.textBlock(lines, { name: "code excerpt", markdown: false });
    return [SK.el("dt", {}, "excerpt"), SK.el("dd", {}, block)];
  }

  function inside(check, root) {
    const inChanges = check.evidence && check.evidence.in === "changes";
    const line = (label, text) =>
      text
        ? [
            SK.el("dt", {}, label),
            SK.el("dd", {}, SK.textBlock(String(text), { name: "plain-text", markdown: false })),
          ]
        : null;
    return SK.el(
      "div",
      { class: "check-inside" },
      SK.el(
        "dl",
        {},
        check.error ? line("could not be evaluated", check.error) : null,
        line("expected", check.expected),
        // After a failed gate it is the gate's, which says it itself.
        check.gate ? null : line("found", (check.found || "").replace(/^found /, "")),
        inChanges || !check.key ? excerpt(check.excerpt) : null,
        (check.notes || []).map((note) => line("note", note)),
        (check.votes || []).length > 1 ? line("votes", check.votes.map(SK.score).join(", ")) : null,
        check.kind && check.kind !== check.name
          ? line("check", check.kind + (check.scope ? `, of ${check.scope}` : ""))
          : null,
      ),
      check.key
        ? SK.button(inChanges ? "Show what changed" : "Show in the text", () => SK.showMark(root(), check.key), { class: "show-evidence" })
        : null,
      (check.children || []).length
        ? SK.el(
            "ul",
            {},
            check.children.map((child) => SK.el("li", {}, SK.check(child, root))),
          )
        : null,
    );
  }
})();
