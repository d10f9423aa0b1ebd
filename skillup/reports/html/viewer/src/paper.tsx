/* On paper: the summary, the table, and the conversations that failed, with everything unfolded. Of trials
   of a case that failed for the same reason, one. Of a single conversation, that one. */
import type { Row, Trial } from "../dist/types";
import { Turns } from "./conversation";
import { trial } from "./data";
import { announce, sync, type Foldable } from "./dom";
import { plural } from "./text/format";
import { CHUNK, caseKey, isBad, page, shownGroups, view } from "./state";
import { TrialHead } from "./trial";

const MOST = 100;
const AT_HAND = 25;
const unpacked = new Map<number, Trial | null>(); // null: it cannot be read

/* One trial of each case and reason; `like`: the other trials that failed for it. */
function failing(): Array<{ row: Row; like: Row[] }> {
  const found = new Map<string, { row: Row; like: Row[] }>();
  const groups = page.index ? shownGroups(page.index.rows, { ...page.filter, status: undefined }) : [];
  for (const row of groups.flatMap((group) => group.shown).filter(isBad)) {
    const key = [caseKey(row), row.status, row.reason].join("\u0000");
    if (found.has(key)) found.get(key)!.like.push(row);
    else found.set(key, { row, like: [] });
  }
  return [...found.values()];
}

const unpack = async (n: number) => void unpacked.set(n, await trial(n).catch(() => null));
const isFirstPage = () => page.index !== null && page.route.page === "table";

/* Unpacks what has to be printed, then opens the browser's dialog. */
export async function print(): Promise<void> {
  if (isFirstPage()) {
    announce("Preparing the conversations that failed");
    await Promise.all(failing().slice(0, MOST).map(({ row }) => unpack(row.n)));
  }
  window.print();
}

let opened: Foldable[] = [];

function prepare(): void {
  if (page.printed) return;
  sync(() => {
    if (isFirstPage()) Object.assign(page, { printed: unpacked, drawn: Infinity, limit: Infinity });
    view.update();
  });
  // A check that passed says on paper no more than that.
  const folded = ".matrix, .chart-table, .reasoning, .check-PASS, .check-PASS *";
  opened = [...document.querySelectorAll<Foldable>(`main details:not([open], ${folded})`)];
  for (const one of opened) one.fold?.(true);
}

function tidyUp(): void {
  for (const one of opened) one.fold?.(false);
  opened = [];
  if (page.mode === "view") unpacked.clear(); // a run that goes on has others next time
  Object.assign(page, { printed: null, drawn: CHUNK });
  view.update();
}

export function startPrinting(): void {
  addEventListener("beforeprint", prepare);
  addEventListener("afterprint", tidyUp);
  if (page.mode !== "report") return;
  // The browser's own menu does not wait for us: have the first ones at hand.
  const later = window.requestIdleCallback || ((work: () => void) => setTimeout(work, 500));
  later(async () => {
    for (const { row } of failing().slice(0, AT_HAND)) await unpack(row.n);
  });
}

/* What of the conversations that failed is not on the paper, and how it gets there. */
function missing(unprepared: number, beyond: number): string {
  const said = (number: number) =>
    `${plural(number, "conversation")} that failed ${number === 1 ? "is" : "are"} not printed`;
  const parts = [
    unprepared &&
      `${said(unprepared)} here, because the browser's own menu does not wait for them: ` +
        "print with the page's Print button, or Ctrl-P.",
    beyond && `${said(beyond)}, beyond the first ${MOST}: filter the table to print others.`,
  ];
  return parts.filter(Boolean).join(" ");
}

export function Paper({ printed }: { printed: Map<number, Trial | null> }) {
  const all = failing();
  const some = all.slice(0, MOST);
  const unprepared = some.filter(({ row }) => !printed.has(row.n)).length;
  const notice = missing(unprepared, all.length - some.length);
  return (
    <section id="annex">
      {notice ? (
        <p class="notice" id="not-printed">
          {notice}
        </p>
      ) : null}
      {some.map(({ row, like }) => {
        const detail = printed.get(row.n);
        if (!detail?.turns) return null;
        const others = like.map((one) => `trial ${one.trial}`).join(", ");
        return (
          <article class="case">
            <TrialHead detail={detail} row={row} />
            {others ? (
              <p class="note like">{`This is trial ${row.trial}. For the same reason failed: ${others}.`}</p>
            ) : null}
            <Turns detail={detail} />
          </article>
        );
      })}
    </section>
  );
}
