/* A conversation as it happened, from the system prompt to the last check. */
import { conversation as skConversation } from "./case.js";
import { comparable } from "../compare/compare.js";
import { attempts } from "./attempts.js";
import { caseHead } from "./case_head.js";
import { checks as skChecks, collectEvidence } from "./checks.js";
import { failingNeighbours, nextTrial } from "./reading_place.js";
import { item as skItem, speech, turn as skTurn } from "./turn.js";
import { detail as skDetail } from "../data.js";
import { announce, el, replace, tell, unfoldAround } from "../dom.js";
import { plural } from "../format.js";
import { liveEnd, waitingPage } from "../live/live_trial.js";
import { address as skAddress, compareAddress, go, parseRoute, trialAddress } from "../route.js";
import { page } from "../state.js";
import { status } from "../table/rows.js";
import { hits as skHits } from "../text/hits.js";
import { answerBlock, toggleAsWritten } from "../text/rendered.js";
import { calm, lightUp, textBlock } from "../text/text.js";

/* The conversation alone, without its head; also one column of a pair, and a part of a print. */
/* `marked`: gives what is searched for the places of evidence, if not the conversation itself. */
/* `differing`: Map of turn → places of its answer that are not as in another conversation. */
export function conversation(detail, marked, differing) {
  const root = el("div", { class: "conversation" });
  const shared = { detail, places: collectEvidence(detail), root: marked || (() => root), differing };
  replace(
    root,
    opening(detail),
    detail.turns.map((turn) => skTurn(turn, shared)),
    ending(detail, shared),
  );
  return root;
}

/* What was there before the first turn: the system prompt and the placed history. */
function opening(detail) {
  const history = detail.history || [];
  return [
    detail.system
      ? speech("system", "System prompt", "added by the case", textBlock(detail.system))
      : null,
    history.length
      ? el(
          "section",
          { class: "history", "aria-label": "History" },
          el(
            "h3",
            { class: "minor" },
            "History ",
            el(
              "span",
              { class: "aside" },
              `${plural(history.length, "message")}, placed in the session, not run`,
            ),
          ),
          history.map((one) =>
            speech(
              (one.role === "user" ? "user" : "agent") + " placed",
              { user: "User", assistant: "Agent", tool: "Tool" }[one.role] || one.role,
              "placed",
              [
                one.content
                  ? one.role === "user"
                    ? textBlock(one.content)
                    : answerBlock(one.content)
                  : null,
                (one.items || []).map((item) => skItem(item, [])),
              ],
            ),
          ),
        )
      : null,
  ];
}

function ending(detail, shared) {
  const end = detail.simulated_end;
  const checks = detail.conversation_checks || [];
  return [
    end
      ? el(
          "p",
          { class: "simulated-end" },
          el("span", { class: "label" }, "simulated user"),
          " ",
          {
            completed: "reached its aim",
            impossible: "found its aim impossible",
            limit: "stopped at the limit of turns",
          }[end.stop] || end.stop,
          end.reason ? [": ", el("q", {}, end.reason)] : null,
        )
      : null,
    checks.length
      ? el(
          "section",
          { class: "conversation-checks", tabindex: "-1" },
          skChecks(checks, "Checks of the whole conversation", shared.root),
        )
      : null,
  ];
}

export async function casePage(n, turn) {
  const { route, index } = page;
  const row = index.rows.find((one) => one.n === n);
  const [detail, problem] = await skDetail(n).then(
    (found) => [found, null],
    (error) => [null, error],
  );
  if (page.route !== route) return null; // keys and title are those of what is shown by now
  if (problem) return noDetail(row, problem);
  if (detail.waiting) return waitingPage(row, detail);
  if (detail.problem) return noDetail(row, new Error(detail.problem));
  const conversation = skConversation(detail);
  const hits = skHits(conversation, page.filter);
  const article = el(
    "article",
    { class: "case" },
    caseHead(detail, row),
    hits ? hits.bar : null,
    conversation,
    attempts(detail),
    detail.live ? liveEnd(detail) : null,
  );
  followJumps(article, (part) => trialAddress(n, part));
  page.keys = [...(hits ? hits.keys : []), ...keysOf(article)];
  page.back = () => go(page.tableAddress || skAddress(""));
  page.shown = turn ? () => jumpTo(article, turn) : hits && hits.first;
  document.title = `${detail.case_id} · ${page.index.run.run_id} · skillup`;
  return article;
}

/* Links to turns move the reader there; `address`: what the browser shows then. */
export function followJumps(article, address) {
  article.addEventListener("click", (event) => {
    const jump = event.target.closest("a.jump");
    if (!jump || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const part = jump.dataset.turn;
    history.replaceState(null, "", address(part));
    if (!(jump.classList.contains("to-check") && jumpToCheck(article, part))) jumpTo(article, part);
  });
}

/* The keys of what shows turns. */
export const turnKeys = (article) => [
  ["j", "next turn", () => step(article, 1)],
  ["k", "previous turn", () => step(article, -1)],
  ["e", "fold or unfold all tool calls", () => toggleAll(article)],
  ["w", "messages as they were written, or drawn", () => toggleAsWritten()],
];

function keysOf(article) {
  // By the address, which a key changes at once: the page hears of that a moment later.
  const here = () => parseRoute(location.hash).n;
  const open = (row, none) => {
    if (row) go(trialAddress(row.n));
    else tell(none);
  };
  return [
    ["n", "next failing case", () => open(failingNeighbours(here()).next, "No more failing cases")],
    [
      "p",
      "previous failing case",
      () => open(failingNeighbours(here()).previous, "No failing case before"),
    ],
    ["]", "next trial of this case", () => open(nextTrial(here(), 1), "This is its last trial")],
    ["[", "previous trial of this case", () => open(nextTrial(here(), -1), "This is its first trial")],
    [
      "c",
      "compare with another trial of this case",
      () => {
        const [other] = comparable(here());
        if (other) go(compareAddress(here(), other.n));
        else announce("This case has no other trial");
      },
    ],
    ...turnKeys(article),
    [
      "/",
      "back to the filter",
      () => {
        page.focusFilter = true;
        page.back();
      },
    ],
  ];
}

const partOf = (root, part) =>
  part === "end"
    ? root.querySelector(".conversation-checks")
    : root.querySelector(`.turn[data-turn="${Number(part)}"]`);

export function jumpTo(root, part) {
  const node = partOf(root, part);
  if (!node) return;
  node.focus({ preventScroll: true });
  node.scrollIntoView({ block: "start", behavior: calm() ? "auto" : "smooth" });
}

/* To the first check of a part that was not met; false if it has none. */
export function jumpToCheck(root, part) {
  const node = partOf(root, part);
  const check =
    node && (node.querySelector(".check-FAIL, .check-ERROR") || node.querySelector(".check-SKIP"));
  if (!check) return false;
  unfoldAround(check);
  lightUp(check);
  const summary = check.querySelector("summary");
  if (summary) summary.focus({ preventScroll: true });
  check.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
  return true;
}

function step(article, by) {
  const turns = [...article.querySelectorAll(".turn:not(.of-attempt)")];
  let at = turns.findIndex((turn) => turn.contains(document.activeElement));
  if (at < 0) at = by > 0 ? -1 : turns.length;
  const turn = turns[Math.max(0, Math.min(turns.length - 1, at + by))];
  if (turn) jumpTo(article, turn.dataset.turn);
}

function toggleAll(article) {
  const all = [...article.querySelectorAll("details.tool, details.reasoning, details.changes")];
  const open = !all.every((one) => one.open);
  const { activeElement } = document;
  const parts = [...article.querySelectorAll(".turn-head, .who, details.tool")];
  const box = (one) => one.getBoundingClientRect();
  const anchor = parts.find((one) => box(one).height && box(one).top >= 0);
  const top = anchor && box(anchor).top;
  // Where it is laid out, each of thousands would cost as much as all of them do at once.
  const place = document.createComment("");
  article.replaceWith(place);
  for (const one of all) {
    if (open) one.buildInside();
    one.open = open;
  }
  place.replaceWith(article);
  if (article.contains(activeElement)) activeElement.focus({ preventScroll: true });
  const goBack = () => anchor && scrollBy({ top: box(anchor).top - top, behavior: "instant" });
  goBack();
  // How high thousands of calls are that are out of sight is told a moment later.
  if (article.querySelector(".many")) requestAnimationFrame(() => requestAnimationFrame(goBack));
  announce(open ? "All tool calls unfolded" : "All tool calls folded");
}

export function noDetail(row, problem) {
  page.back = () => go(page.tableAddress || skAddress(""));
  return el(
    "article",
    { class: "case" },
    el("p", { class: "way" }, el("a", { href: skAddress("") }, "← All conversations")),
    el("h1", {}, row ? row.case_id : "Not found"),
    row ? el("p", { class: "verdict" }, status(row.status), " ", row.reason || "") : null,
    el(
      "p",
      { class: "notice" },
      row && /RUNNING|WAITING|NOT_HELD|NOT_NEEDED/.test(row.status)
        ? "This conversation has not been held to its end."
        : `It cannot be shown: ${problem.message}`,
    ),
  );
}
