/* What was taken out of a turn: chips that show where it was found and where it is used. */
import { button, el, plain } from "../dom.js";
import { trialAddress } from "../route.js";
import { clearMarks, showMark, textBlock } from "../text/text.js";

/* The key of a captured value: the same in the answer, on the chip and where it is filled in. */
export const captureKey = (turn, variable) => plain(`capture-${turn}-${variable.replace(/\s/g, "_")}`);

/* Which turn a variable's value came from, as seen at `turn`: the last before it that took it. */
export function sourceOf(detail, turn, variable) {
  const before = detail.turns.filter(
    (one) =>
      one.turn_number < turn && (one.captures || []).some((capture) => capture.variable === variable),
  );
  return before.length ? before[before.length - 1].turn_number : null;
}

export function captures(detail, turn, root) {
  if (!(turn.captures || []).length) return null;
  return el(
    "ul",
    { class: "captures", "aria-label": "Captured" },
    turn.captures.map((capture) => {
      const key = captureKey(turn.turn_number, capture.variable);
      const light = (scroll) => showMark(root(), key, { scroll });
      const value = capture.value || "";
      return el(
        "li",
        {},
        button(
          [
            el("code", {}, "<<" + capture.variable + ">>"),
            " = ",
            el(
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
              mouseleave: clearMarks,
              focus: () => light(false),
              blur: clearMarks,
            },
          },
        ),
        (capture.used_in || []).length
          ? [
              el("span", { class: "aside" }, " used in "),
              capture.used_in.map((number, at) => [
                at ? ", " : null,
                el(
                  "a",
                  { href: trialAddress(detail.n, number), class: "jump", "data-turn": number },
                  "turn " + number,
                ),
              ]),
            ]
          : el("span", { class: "aside" }, " not used in a later message"),
      );
    }),
  );
}

/* A message with its filled-in parts marked. */
export function message(detail, turn) {
  const parts = turn.content_parts;
  if (!parts || !parts.some((part) => part.variable)) return textBlock(turn.content);
  const ranges = [];
  let text = "";
  for (const part of parts) {
    if (part.variable) {
      const source = sourceOf(detail, turn.turn_number, part.variable);
      ranges.push({
        start: text.length,
        end: text.length + part.text.length,
        class: "filled",
        marks: [
          source === null
            ? "var-" + part.variable.replace(/\s/g, "_")
            : captureKey(source, part.variable),
        ],
        title: `<<${part.variable}>>`,
      });
    }
    text += part.text;
  }
  return textBlock(text, { ranges });
}
