/* Starts the page, shows what the address says whenever it changes, follows a run that goes on. */
import { render } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Trial } from "./data";
import { ComparePage, PairPage } from "./compare";
import { embeddedIndex, failedPart, fetchIndex, fetchRuns, fetchStamp, runAddress, trial } from "./data";
import { Button, announce, behaviour, byId, guard, lightUp, unfoldAround } from "./dom";
import { known, time } from "./text/format";
import { keys, startKeys } from "./keys";
import { Paper, print, startPrinting } from "./paper";
import * as state from "./state";
import { address, page, rowOf, view } from "./state";
import { FirstPage } from "./summary";
import { RunsPage } from "./table/runs";
import { showTrial } from "./table/table";
import { TrialPage } from "./trial";

const darkWished = matchMedia("(prefers-color-scheme: dark)");

function App() {
  const { index, runs } = page;
  const run = index?.run;
  const viewed = page.mode === "view";
  return (
    <>
      <a class="skip-link" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header class="top">
        <nav aria-label="Report">
          <a class="brand" href={viewed ? "#/" : address("")}>
            skillup
          </a>
          {run ? (
            <span class="trail">
              {viewed ? <a href="#/">All runs</a> : null}
              {viewed ? " / " : null}
              <a href={address("")} class="run-id" title={run.path}>
                {run.run_id}
              </a>
            </span>
          ) : null}
        </nav>
        <span class="top-facts">
          {run?.running ? (
            <span class="live" id="live">
              running
            </span>
          ) : null}
          {run ? <time dateTime={run.started_at}>{time(run.started_at)}</time> : null}
        </span>
        <span class="switches">
          {index ? (
            <Button class="quiet print" onClick={print}>
              Print
            </Button>
          ) : null}
          <Button class="quiet" aria-label="Show the keys" onClick={toggleHelp}>
            Keys
          </Button>
          <Button
            id="theme"
            class="quiet"
            aria-label={isDark() ? "Use light colours" : "Use dark colours"}
            onClick={toggleTheme}
          >
            {isDark() ? "Light" : "Dark"}
          </Button>
        </span>
      </header>
      <main id="main" tabIndex={-1}>
        {index ? <View /> : runs && viewed && !page.runId ? <RunsPage runs={runs} /> : <Failed />}
        {page.printed ? <Paper printed={page.printed} /> : null}
      </main>
      <div id="status" class="visually-hidden" role="status" aria-live="polite" />
      {page.help ? <Help /> : null}
    </>
  );
}

const Failed = () =>
  page.problem === null ? null : (
    <div class="case">
      <h1>This cannot be shown</h1>
      <p class="notice">{page.problem}</p>
    </div>
  );

function View() {
  const { index, route, details } = page;
  if (route.page === "trial") return <TrialPage detail={details[0] || null} />;
  if (route.page === "compare") return <ComparePage details={details} />;
  if (route.page === "pair") return <PairPage details={details} />;
  return <FirstPage index={index!} />;
}

/* The address says what is shown; it is not the link's to change. */
function skip(event: Event): void {
  event.preventDefault();
  byId("main")!.focus();
  byId("main")!.scrollIntoView();
}

/* Light and dark: the system's wish, unless the reader chose otherwise for this page. */
function isDark(): boolean {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : darkWished.matches;
}

export function toggleTheme(): void {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  view.update();
  announce(next === "dark" ? "Dark colours" : "Light colours");
}

export function toggleHelp(): void {
  const open = byId("help") as HTMLDialogElement | null;
  if (open) return open.close();
  page.help = true;
  view.update();
}

const KEY_NAMES: Record<string, string> = {
  ...{ ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→" },
};

/* The list of keys, as a dialog, which gives the focus back to where it was. */
function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []); // before another key
  const onClose = () => {
    page.help = false;
    view.update();
  };
  return (
    <dialog ref={dialog} id="help" aria-labelledby="help-title" onClose={onClose}>
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {keys().map(([names, what]) => [
          <dt>
            {names.split(" ").map((name) => (
              <kbd>{KEY_NAMES[name] || name}</kbd>
            ))}
          </dt>,
          <dd>{what}</dd>,
        ])}
      </dl>
      <Button class="quiet" onClick={() => dialog.current?.close()}>
        Close
      </Button>
    </dialog>
  );
}

/* What an address needs before it can be shown; `wanted` is the newest, and only that is shown. */
let wanted = page.route;
let shownBefore = false;

/* A trial, or null if it cannot be read, for whatever reason. */
async function read(n: number | null | undefined): Promise<Trial | null> {
  try {
    return known(n) ? await trial(n) : null;
  } catch (error) {
    page.problem = (error as Error).message;
    return null;
  }
}

const ranOnly = (detail: Trial | null) => (detail?.turns && !detail.live ? detail : null);

async function load(route: state.Route): Promise<Array<Trial | null>> {
  const against = page.filter.against || null;
  if (page.mode === "view" && !route.runId) {
    const runs = await fetchRuns();
    if (wanted === route) Object.assign(page, { runs, index: null, runId: null, all: false });
    return [];
  }
  const same = page.runId === route.runId && page.against === against && page.index;
  if (page.mode === "view" && !same) {
    const [runs, index] = await Promise.all([page.runs || fetchRuns(), fetchIndex(route.runId!)]);
    if (wanted !== route) return [];
    const fresh = { unfolded: new Set(), tableAddress: null, all: false };
    Object.assign(page, { runs, index, runId: route.runId, against, ...fresh });
  }
  if (route.page === "trial") return [await read(rowOf(route.n) ? route.n : null)];
  if (route.page === "compare") {
    const found = await Promise.all([read(route.n), read(route.other)]);
    return found.map(ranOnly);
  }
  if (route.page === "pair") {
    const row = page.index?.sides?.rows[route.n ?? -1];
    const found = await Promise.all([read(row?.a?.n), read(row?.b?.n)]);
    return found.map((detail) => (detail?.turns ? detail : null));
  }
  return [];
}

async function navigate(): Promise<void> {
  const route = state.parseRoute(location.hash);
  const from = page.route;
  const main = byId("main")!;
  wanted = route;
  main.ariaBusy = "true";
  page.filter = state.filterOf(route.query);
  page.problem = null;
  if (page.mode === "view" && route.runId) page.runId ||= route.runId;
  let details: Array<Trial | null> = [];
  try {
    details = await load(route);
  } catch (error) {
    if (wanted !== route) return;
    page.problem = (error as Error).message;
    Object.assign(page, { index: null, runs: null, runId: route.runId });
  }
  if (wanted !== route) return;
  Object.assign(page, { route, details });
  if (route.page === "table" && page.index) page.tableAddress = address("");
  document.title = title();
  view.update();
  arrive(route, shownBefore ? from : null);
  shownBefore = true;
  main.removeAttribute("aria-busy");
}

function title(): string {
  const { index, details, route } = page;
  const shown = route.page === "table" ? null : details.find(Boolean)?.case_id;
  return index
    ? [shown, index.run.run_id, "skillup"].filter(Boolean).join(" · ")
    : "Runs · skillup";
}

/* Where the reader is put: at the row that was left, at the wanted turn, or at the top. */
function arrive(route: state.Route, from: state.Route | null): void {
  if (route.page === "table") {
    const left = from?.n && /trial|compare/.test(from.page) ? from.n : null;
    if (left) requestAnimationFrame(() => showTrial(left));
    else scrollTo(0, 0);
    return;
  }
  byId("main")!.focus({ preventScroll: true });
  scrollTo(0, 0);
  const shown = route.page === "trial" ? page.details[0] : null;
  const bad = /FAIL|ERROR/.test(shown?.grade?.status || "") && !shown!.error;
  const part = bad ? failedPart(shown!) : null;
  if (route.turn) requestAnimationFrame(() => jumpTo(route.turn!, "auto"));
  else if (part !== null) requestAnimationFrame(() => jumpToCheck(String(part), "auto"));
}

/* The turn that is being read, which has begun at the top of the window; null: the head is. */
export function turnInView(): string | null {
  const turns = [...document.querySelectorAll<HTMLElement>("main .turn[data-turn]")];
  const begun = turns.filter((turn) => turn.getBoundingClientRect().top < 120);
  return (scrollY > 0 && begun.at(-1)?.dataset.turn) || null;
}

const partNode = (part: number | string) =>
  document.querySelector<HTMLElement>(
    part === "end" ? "main .conversation-checks" : `main .turn[data-turn="${Number(part)}"]`,
  );

export function jumpTo(part: number | string, behavior = behaviour()): void {
  partNode(part)?.focus({ preventScroll: true });
  partNode(part)?.scrollIntoView({ block: "start", behavior });
}

/* To what decided in a part, an error or a check that failed; false if it has none. `auto`: on
   arrival, when what is in view already stays where it is. */
function jumpToCheck(part: string, behavior = behaviour()): boolean {
  const node = partNode(part);
  const all = (name: string) => [...(node?.querySelectorAll(name) || [])];
  const reason = page.details[0]?.grade?.reason || "";
  const named = (one: Element) => reason.includes(one.querySelector(".check-name")!.textContent!);
  const failed = all(".check-FAIL, .check-ERROR");
  const check =
    all(".error-box")[0] || failed.find(named) || failed[0] || all(".check-SKIP")[0] || null;
  if (!check) return false;
  unfoldAround(check);
  lightUp(check);
  const { top, bottom } = check.getBoundingClientRect();
  if (behavior === "auto" && top >= 0 && bottom <= innerHeight) return true;
  if (behavior !== "auto") check.querySelector("summary")?.focus({ preventScroll: true });
  check.scrollIntoView({ block: "center", behavior });
  return true;
}

/* Links to turns move the reader there. */
function onJump(event: MouseEvent): void {
  const jump = (event.target as Element).closest<HTMLElement>("a.jump");
  if (!jump || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const part = jump.dataset.turn!;
  const { page: kind, n, other } = page.route;
  const to = {
    trial: state.trialAddress(n, part),
    compare: state.compareAddress(n, other, part),
    pair: address(`pair/${n}/turn/${part}`),
    table: location.hash,
  };
  history.replaceState(null, "", to[kind]);
  if (!(jump.classList.contains("to-check") && jumpToCheck(part))) jumpTo(part);
}

/* A run that goes on, or the list of runs, under `skillup view`: while somebody looks, its stamp is
   asked for every second; when that is another one the page asks anew and is drawn anew. */
let shownStamp = ""; // what is shown: its address and stamp

function stampAddress(): string | null {
  if (page.mode !== "view" || document.hidden) return null;
  if (!page.index) return page.runId ? null : "api/stamp";
  return page.index.run.finished ? null : runAddress(page.runId!) + "/stamp";
}

async function follow(): Promise<void> {
  const address = stampAddress();
  try {
    const now = address && address + (await fetchStamp(address));
    if (now && now !== shownStamp) {
      await refresh();
      shownStamp = now;
    }
  } catch {
    // the server has gone, or answers the next time
  }
  setTimeout(follow, 1000);
}

async function refresh(): Promise<void> {
  const { runId, route, against, details } = page;
  const same = () => page.runId === runId && page.against === against && page.route === route;
  if (!runId) {
    const runs = await fetchRuns();
    if (same()) Object.assign(page, { runs });
  } else {
    const index = await fetchIndex(runId);
    if (!same()) return;
    page.index = index;
    // What is shown of a trial without a grade, or that could not be read, may have changed.
    if (route.page === "trial" && !details[0]?.grade) {
      const now = await read(route.n);
      if (!same()) return;
      const news = now && JSON.stringify(now) !== JSON.stringify(details[0]);
      if (now) page.details = [now];
      if (news)
        announce(now.live || now.waiting ? "A turn has ended" : "The conversation has ended");
    }
  }
  view.update();
}

function start(): void {
  const index = embeddedIndex();
  page.mode = index?.run && index.mode !== "view" ? "report" : "view";
  page.index = page.mode === "report" ? index : null;
  if (index?.open && !location.hash)
    history.replaceState(null, "", `#/run/${encodeURIComponent(index.open)}/`);
  guard();
  const root = byId("app")!;
  view.update = () => render(<App />, root);
  darkWished.addEventListener("change", () => view.update());
  startKeys();
  view.update();
  root.addEventListener("click", onJump);
  addEventListener("hashchange", () => void navigate());
  startPrinting();
  void navigate();
  if (page.mode === "view") void follow();
}

start();

export { page }; // for tests of the page, and for whoever looks into it with a browser's console
