/* Two conversations in two columns, aligned by turn: of two runs, or two trials of one case. */
import { differences, firstOtherCall } from "./differences.js";
import { changeWord, runText, sideText } from "./sides.js";
import { conversation as skConversation, followJumps, jumpTo, noDetail, turnKeys } from "../conversation/case.js";
import { error, lastRaw } from "../conversation/error.js";
import { detail as skDetail } from "../data.js";
import { announce, el } from "../dom.js";
import { known, plural } from "../format.js";
import { address as skAddress, go, trialAddress } from "../route.js";
import { page as skPage } from "../state.js";
import { calm } from "../text/text.js";

/* `heads`: what stands over each column; `details`: [a, b], null where there is none; `top`: what is
   above both; `address(part)`: what the browser shows for a turn. */
export function pair({ heads, details, top, address }) {
  const { turns, words } = differences(...details);
  const page = el("article", { class: "case pair" });
  // Marks of one side are looked for on that side only: both sides call them by the same names.
  const marked = (letter) => () => ({
    querySelectorAll: (what) => page.querySelectorAll(`.side-${letter} ${what}`),
  });
  const conversations = details.map(
    (detail, at) => detail && skConversation(detail, marked("AB"[at]), words[at]),
  );
  const first = turns.findIndex((what) => what.length);
  // Appended bit by bit: the page is there for `marked` before it is filled.
  page.append(
    ...top,
    el(
      "div",
      { class: "pair-row pair-heads" },
      heads.map((head) => el("div", {}, head)),
    ),
  );
  const all = details.every(Boolean);
  if (all) page.append(firstDifference(turns, first, address));
  // Both before the turns are taken out: what is after them is known by them.
  const [before, after] = [true, false].map((which) => pairRow(conversations.map((one) => rest(one, which))));
  const rows = [
    before,
    ...turns.map((what, at) =>
      pairRow(
        conversations.map((one) => (one ? one.querySelector(`.turn[data-turn="${at + 1}"]`) : null)),
        all ? { number: at + 1, what, first: at === first } : null,
      ),
    ),
    after,
  ];
  page.append(...rows.filter(Boolean));
  turns.forEach((what, at) => {
    if (what.includes("tool calls")) markCall(page, details, at);
  });
  followJumps(page, address);
  skPage.keys = [["d", "next difference", () => nextDifference(page)], ...turnKeys(page)];
  return page;
}

function firstDifference(turns, first, address) {
  if (first < 0)
    return el("p", { class: "first-difference" }, "Messages, tool calls and answers are the same.");
  const count = turns.filter((what) => what.length).length;
  return el(
    "p",
    { class: "first-difference" },
    el(
      "a",
      { href: address(first + 1), class: "jump", "data-turn": first + 1 },
      `First difference: turn ${first + 1}`,
    ),
    ` (${turns[first].join(", ")})`,
    count > 1 ? el("span", { class: "aside" }, `; ${plural(count, "turn")} differ`) : null,
  );
}

/* The first call that is not the same gets a sign on both sides. */
function markCall(page, details, at) {
  const [a, b] = details.map((detail) => detail.turns[at]);
  const place = firstOtherCall(a, b);
  for (const letter of "AB") {
    const turn = page.querySelector(`.side-${letter} > .turn[data-turn="${at + 1}"]`);
    const calls = turn
      ? turn.querySelectorAll(
          ":scope > .turn-body > .said > .agent > .tool, :scope > .turn-body > .said > .agent > .sub-agent > .tool",
        )
      : [];
    const call = calls[place];
    if (!call) continue;
    call.classList.add("differs-here");
    call.querySelector("summary").append(el("span", { class: "tag" }, "differs"));
  }
}

function nextDifference(page) {
  const rows = [...page.querySelectorAll(".pair-row.differing")];
  const next = rows.find((row) => row.getBoundingClientRect().top > 80) || rows[0];
  if (!next) return announce("There is no difference");
  const turn = next.querySelector(".turn");
  if (turn) turn.focus({ preventScroll: true });
  next.scrollIntoView({ block: "start", behavior: calm() ? "auto" : "smooth" });
}

/* Both conversations of a case, in two runs. */
export async function pairPage(at, turn) {
  const { route } = skPage;
  const sides = skPage.index.sides;
  const row = sides && sides.rows[at];
  if (!row) return noDetail(null, new Error("there is no such pair"));
  const get = async (side, held) =>
    side && held && known(side.n) ? skDetail(side.n).catch(() => null) : null;
  const found = await Promise.all([get(row.a, sides.details_of_a), get(row.b, true)]);
  if (skPage.route !== route) return null;
  const details = found.map((detail) => (detail && detail.turns ? detail : null));
  const columns = [
    ["A", sides.a, row.a],
    ["B", sides.b, row.b],
  ];
  const way = skPage.tableAddress || skAddress("");
  skPage.back = () => go(way);
  const page = pair({
    details,
    address: (part) => skAddress(`pair/${at}/turn/${part}`),
    top: [
      el("p", { class: "way" }, el("a", { href: way }, "← Both runs")),
      el(
        "h1",
        {},
        row.case_id,
        " ",
        el("span", { class: "case-title" }, changeWord(row.change)),
      ),
      ...edited(row.case_changes || []),
    ],
    heads: columns.map(([letter, run, side], place) => [
      el("h2", { class: "minor" }, runText(run, letter)),
      head(details[place], sideText(side)),
      details[place] && letter === "B"
        ? el("a", { href: trialAddress(details[place].n) }, "Open alone")
        : null,
    ]),
  });
  skPage.shown = turn ? () => jumpTo(page, turn) : null;
  return page;
}

const edited = (changes) =>
  changes.length
    ? [
        el(
          "p",
          { class: "notice case-changes" },
          el("strong", {}, "The case was changed between the two runs"),
          `: ${changes.join(", ")}.`,
        ),
      ]
    : [];

/* A column's verdict. */
function head(detail, status) {
  return [
    el(
      "p",
      { class: "verdict" },
      status,
      detail && detail.grade && detail.grade.reason
        ? el("span", { class: "verdict-reason" }, " " + detail.grade.reason)
        : null,
    ),
    detail
      ? error(detail.error, "The trial could not be held", lastRaw(detail))
      : el("p", { class: "notice" }, "Its conversation is not in this report."),
  ];
}
export const pairHead = head;

/* What is before the first turn, or after the last. */
function rest(conversation, before) {
  if (!conversation) return null;
  const children = [...conversation.children];
  const isTurn = children.map((child) => child.classList.contains("turn"));
  const first = isTurn.indexOf(true);
  const last = isTurn.lastIndexOf(true);
  const wanted = before
    ? children.slice(0, first < 0 ? children.length : first)
    : first < 0
      ? []
      : children.slice(last + 1);
  return wanted.length ? el("div", {}, wanted) : null;
}

/* `turn`: {number, what: [what differs], first}, of a row that shows one. */
function pairRow(cells, turn = null) {
  if (cells.every((cell) => !cell)) return null;
  const differs = turn && turn.what.length > 0;
  return el(
    "div",
    { class: "pair-row" + (differs ? " differing" : "") },
    differs
      ? el(
          "p",
          { class: "difference" },
          el("span", { "aria-hidden": "true" }, "≠ "),
          turn.first ? el("strong", {}, "first difference: ") : "differs: ",
          turn.what.join(", "),
        )
      : null,
    cells.map((cell, at) =>
      el(
        "div",
        { class: "pair-cell side-" + "AB"[at] },
        cell || el("p", { class: "aside nothing" }, "–"),
      ),
    ),
  );
}
