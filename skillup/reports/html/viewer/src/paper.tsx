/* On paper: the summary, the table, and the conversations that failed, with everything unfolded. Of
   trials of a case that failed for the same reason, one. Of a single conversation, that one. */
import type { Row } from "../dist/types";
import type { Trial } from "./data";
import { Turns } from "./conversation";
import { trial } from "./data";
import { announce, sync, type Foldable } from "./dom";
import { plural } from "./text/format";
import { caseKey, isBad, page, shownGroups, view } from "./state";
import { TrialHead } from "./trial";

const MOST = 100;

/* One trial of each case and reason. */
function failing(): Row[] {
  const found = new Map<string, Row>();
  const filter = { ...page.filter, status: undefined };
  const groups = page.index ? shownGroups(page.index.rows, filter) : [];
  for (const row of groups.flatMap((group) => group.shown).filter(isBad)) {
    const key = [caseKey(row), row.status, row.reason].join("\u0000");
    if (!found.has(key)) found.set(key, row);
  }
  return [...found.values()];
}

/* Unpacks what has to be printed, then opens the browser's dialog; its own menu does not wait for
   us. */
export async function print(): Promise<void> {
  const printed = new Map<number, Trial | null>();
  if (page.index && page.route.page === "table") {
    announce("Preparing the conversations that failed");
    const some = failing().slice(0, MOST);
    const unpack = async ({ n }: Row) => void printed.set(n, await trial(n).catch(() => null));
    await Promise.all(some.map(unpack));
    sync(() => {
      page.printed = printed;
      view.update();
    });
  }
  window.print();
}

let opened: Foldable[] = [];

function prepare(): void {
  if (opened.length) return;
  // A check that passed says on paper no more than that.
  const folded = ".reasoning, .check-PASS, .check-PASS *";
  opened = [...document.querySelectorAll<Foldable>(`main details:not([open], ${folded})`)];
  for (const one of opened) one.fold?.(true);
}

function tidyUp(): void {
  for (const one of opened) one.fold?.(false);
  opened = [];
  page.printed = null;
  view.update();
}

export function startPrinting(): void {
  addEventListener("beforeprint", prepare);
  addEventListener("afterprint", tidyUp);
}

export function Paper({ printed }: { printed: Map<number, Trial | null> }) {
  const beyond = failing().length - MOST;
  return (
    <section id="annex">
      {beyond > 0 ? (
        <p class="notice" id="not-printed">
          {`${plural(beyond, "more conversation")} failed, beyond the first ${MOST}: `}
          filter the table to print others.
        </p>
      ) : null}
      {[...printed].map(([n, detail]) =>
        detail?.turns ? (
          <article class="case" key={n}>
            <TrialHead detail={detail} row={null} />
            <Turns detail={detail} />
          </article>
        ) : null,
      )}
    </section>
  );
}
