/* What was taken out of a turn: chips that show where it was found and where it is used. */
(function () {
  /* The key of a captured value: the same in the answer, on the chip and where it is filled in. */
  SK.captureKey = (turn, variable) => SK.plain(`capture-${turn}-${variable.replace(/\s/g, "_")}`);

  /* Which turn a variable's value came from, as seen at `turn`: the last before it that took it. */
  SK.sourceOf = function (detail, turn, variable) {
    const before = detail.turns.filter(
      (one) =>
        one.turn_number < turn && (one.captures || []).some((capture) => capture.variable === variable),
    );
    return before.length ? before[before.length - 1].turn_number : null;
  };

  SK.captures = function (detail, turn, root) {
    if (!(turn.captures || []).length) return null;
    return SK.el(
      "ul",
      { class: "captures", "aria-label": "Captured" },
      turn.captures.map((capture) => {
        const key = SK.captureKey(turn.turn_number, capture.variable);
        const light = (scroll) => SK.showMark(root(), key, { scroll });
        const value = capture.value || "";
        return SK.el(
          "li",
          {},
          SK.button(
            [
              SK.el("code", {}, "<<" + capture.variable + ">>"),
              " = ",
              SK.el(
                "span",
                { class: "capture-value" },
                value.length > 120 ? value.slice(0, 120) + "…" : value,
              ),
            ],
            () => light(true),
            {
              class: "capture",
              "data-marks": key,
              title: capture.where ? "Show where it was found" : "",
              on: {
                click: () => light(true),
                mouseenter: () => light(false),
                mouseleave: SK.clearMarks,
                focus: () => light(false),
                blur: SK.clearMarks,
              },
            },
          ),
          (capture.used_in || []).length
            ? [
                SK.el("span", { class: "aside" }, " used in "),
                capture.used_in.map((number, at) => [
                  at ? ", " : null,
                  SK.el(
                    "a",
                    { href: SK.trialAddress(detail.n, number), class: "jump", "data-turn": number },
                    "turn " + number,
                  ),
                ]),
              ]
            : SK.el("span", { class: "aside" }, " not used in a later message"),
        );
      }),
    );
  };

  /* A message with its filled-in parts marked. */
  SK.message = function (detail, turn) {
    const parts = turn.content_parts;
    if (!parts || !parts.some((part) => part.variable)) return SK.textBlock(turn.content);
    const ranges = [];
    let text = "";
    for (const part of parts) {
      if (part.variable) {
        const source = SK.sourceOf(detail, turn.turn_number, part.variable);
        ranges.push({
          start: text.length,
          end: text.length + part.text.length,
          class: "filled",
          marks: [
            source === null
              ? "var-" + part.variable.replace(/\s/g, "_")
              : SK.captureKey(source, part.variable),
          ],
          title: `<<${part.variable}>>`,
        });
      }
      text += part.text;
    }
    return SK.textBlock(text, { ranges });
  };
})();
