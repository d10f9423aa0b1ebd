/* Earlier attempts at a trial: how each ended, said at its top, and their conversations below its own. */
(function () {
  /* What is said at the top; null: this was the first attempt. */
  SK.attemptsTold = function (detail) {
    const before = detail.attempts || [];
    if (!before.length) return null;
    return SK.el(
      "section",
      { class: "notice attempts", "aria-label": "Earlier attempts" },
      SK.el("p", {}, `This is attempt ${detail.attempt}. `),
      before.map((one) =>
        SK.el(
          "p",
          {},
          `Attempt ${one.attempt} ended as `,
          one.error
            ? [SK.status("ERROR"), " ", SK.el("code", {}, one.error.kind), `: ${one.error.message} `]
            : `not to be counted${one.reason ? ": " + one.reason : ""} `,
          one.turns.length
            ? SK.button("Show its conversation", () => show(one.attempt), { class: "quiet show-evidence" })
            : null,
          " ",
          SK.rawLinks(one.raw),
        ),
      ),
    );
  };

  function show(attempt) {
    const fold = document.querySelector(`.attempt[data-attempt="${Number(attempt)}"]`);
    if (!fold) return;
    SK.unfoldAround(fold);
    fold.querySelector("summary").focus({ preventScroll: true });
    fold.scrollIntoView({ block: "start", behavior: SK.calm() ? "auto" : "smooth" });
  }

  /* Their conversations, folded, for what is below the trial's own. */
  SK.attempts = (detail) =>
    (detail.attempts || [])
      .filter((one) => one.turns.length)
      .map((one) =>
        SK.fold(
          { class: "attempt", "data-attempt": one.attempt },
          `Attempt ${one.attempt}, which was not counted`,
          () => conversation(detail, one),
        ),
      );

  function conversation(detail, one) {
    for (const turn of one.turns) Object.assign(turn, { unjudged: true, given_up: true });
    const whatWasSaid = { turns: one.turns, conversation_checks: [], simulated_end: null };
    const root = SK.conversation({ ...detail, ...whatWasSaid });
    // It is no place of the trial: keys and links that lead to turns mean those of the one that counts.
    root.className = "attempt-turns";
    for (const turn of root.querySelectorAll(".turn")) {
      turn.removeAttribute("data-turn");
      turn.classList.add("of-attempt");
    }
    for (const link of root.querySelectorAll("a.jump")) link.replaceWith(...link.childNodes);
    const whole = one.error && !one.turns.some((turn) => turn.error);
    return [whole ? SK.error(one.error, "The attempt could not be held", one.raw) : null, root];
  }
})();
