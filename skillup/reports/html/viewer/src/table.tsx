/* The table of cases: a line each, unfolding to its trials, with the filter above; and the list of runs.
   Lines are drawn as they come near the window. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { CaseHistory, CaseReliability, Decided, Index, Row, RunLine } from "../dist/types";
import { conversationText, readConversations, rowMark } from "./data";
import { Aside, Button, Chip, Hidden, Sign, Status, announce, byId, plain } from "./dom";
import { cost, count, duration, known, mean, plural, score, time, tokenText } from "./text/format";
import * as state from "./state";
import { CHUNK, NO_FILTER, STATUS, page, setFilter, trialAddress, view, type Group } from "./state";

const NAMES: Record<string, string> = {
  ...{ status: "Status", case: "Case", turns: "Turns", engine: "Engine", score: "Score" },
  ...{ time: "Time", tokens: "Tokens", cost: "Cost" },
};
const MOST_DOTS = 24;
const MOST_REASONS = 3;

export const shown = (): Group[] =>
  page.index ? state.shownGroups(page.index.rows, page.filter, conversationText) : [];
export const order = (): Row[] => shown().flatMap((group) => group.shown);

/* Unfolds (true) or folds a case. */
export function fold(group: Group, unfolded: boolean): void {
  if (group.rows.length < 2 || page.unfolded.has(group.key) === unfolded) return;
  if (unfolded) page.unfolded.add(group.key);
  else page.unfolded.delete(group.key);
  announce(unfolded ? `${plural(group.shown.length, "trial")} shown below` : "Trials folded");
  view.update();
}

/* Draws as many lines more; false: all are drawn. */
export function more(lines: number): void {
  page.limit = Math.max(page.limit, page.drawn + lines);
  page.drawn += lines;
  view.update();
}

function focusRow(row: Element | undefined, block: ScrollLogicalPosition): void {
  row?.querySelector("a")?.focus({ preventScroll: true });
  row?.scrollIntoView({ block });
}

const rows = () => [...document.querySelectorAll<HTMLElement>("#rows tr")];

export function moveRow(step: number): void {
  const at = rows().findIndex((row) => row.contains(document.activeElement));
  if (at + step >= rows().length) more(CHUNK);
  const last = rows().length - 1;
  const place = at >= 0 ? Math.max(0, Math.min(last, at + step)) : step > 0 ? 0 : last;
  focusRow(rows()[place], "nearest");
}

/* Folds the case in which the focus is, or unfolds it; from a trial the focus goes to its case. */
export function foldRow(unfolded: boolean): void {
  const row = document.activeElement?.closest<HTMLElement>("#rows tr");
  const group = shown().find((one) => String(one.at) === row?.dataset.group);
  if (!row || !group) return;
  if (!unfolded && row.classList.contains("trial"))
    focusRow(rows().find((one) => one.dataset.group === row.dataset.group), "nearest");
  fold(group, unfolded);
}

/* The line of a trial, with the focus; `unfolded`: that of its case, with its trials below. */
export function showTrial(n: number, unfolded: boolean): void {
  const groups = shown();
  const group = groups.find((one) => one.rows.some((row) => row.n === n));
  if (!group) return;
  if (page.drawn <= groups.indexOf(group)) more(groups.indexOf(group) + CHUNK - page.drawn);
  if (unfolded) fold(group, true);
  const lines = rows().filter((row) => row.dataset.group === String(group.at));
  const trial = lines.slice(1).find((row) => row.dataset.n === String(n));
  focusRow((!unfolded && trial) || lines[0], "center");
}

export function CaseTable({ index }: { index: Index }) {
  const all = state.allGroups(index.rows);
  const groups = shown();
  const several = all.some((group) => group.rows.length > 1);
  const byCase = <T extends CaseHistory | CaseReliability | Decided>(list: T[] | null | undefined) =>
    new Map((list || []).map((one) => [state.caseKey(one), one]));
  const about: About = {
    columns: columnsOf(index.rows),
    suites: (index.run.suites || []).length > 1,
    history: byCase(index.history),
    tested: byCase<CaseReliability | Decided>(index.analysis?.cases || index.decided),
  };
  const decided = [...about.tested.values()].some((one) => one.decision);
  const drawn = groups.slice(0, Math.min(page.drawn, page.limit));
  const status = { status: page.filter.status };
  const counted = index.rows.filter(
    (row) => row.status !== "NOT_NEEDED" || state.matches(row, status),
  );
  const text = countText(groups.flatMap((group) => group.shown).length, counted.length, groups, all);
  const { q, deep } = page.filter;
  useEffect(() => {
    announce(`${text} shown`);
    if (deep && q) readConversations();
  }, [text, q, deep]);
  const rest = groups.length - drawn.length;
  const showMore = () => {
    const first = drawn.length;
    page.limit = Infinity;
    more(CHUNK);
    document.querySelectorAll("#rows tr:not(.trial)")[first]?.querySelector("a")?.focus({ preventScroll: true });
  };
  return (
    <section class="cases" id="cases" aria-labelledby="cases-title">
      <div class="cases-head">
        <h2 id="cases-title">Conversations</h2>
        <output id="shown" for="filter-text" class="shown">
          {page.reading || text}
        </output>
      </div>
      <FilterBar rows={index.rows} />
      <table class={`cases-table${several ? " grouped" : ""}${decided ? " decided" : ""}`}>
        <caption class="visually-hidden">Every case; its name opens the conversation</caption>
        <thead>
          <tr>
            {about.columns.map((key) => (
              <HeadCell name={key} title={key === "turns" && several ? "Trials" : NAMES[key]!} />
            ))}
          </tr>
        </thead>
        <tbody id="rows">
          {drawn.map((group) => [
            <GroupRow key={group.key} group={group} about={about} />,
            ...(page.unfolded.has(group.key) ? trialRows(group, about) : []),
          ])}
        </tbody>
      </table>
      <p class="nothing" id="nothing" hidden={groups.length > 0}>
        No case matches this filter.
      </p>
      <Nearing done={!rest || page.drawn >= page.limit} near={() => more(CHUNK)} />
      <Button id="more" class="quiet" hidden={!rest || page.drawn < page.limit} onClick={showMore}>
        {`Show ${count(rest)} more`}
      </Button>
    </section>
  );
}

/* Calls `near` as long as it is near the window, until `done`. */
function Nearing({ done, near }: { done: boolean; near: () => void }) {
  const node = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (done) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && near(),
      { rootMargin: "800px" },
    );
    observer.observe(node.current!);
    return () => observer.disconnect();
  });
  return <div ref={node} class="table-end" hidden={done} />;
}

/* Those that say anything: one engine is named above, and what no trial tells is left out. */
function columnsOf(rows: Row[]): string[] {
  const needless: Record<string, boolean> = {
    engine: new Set(rows.map((row) => row.engine)).size < 2,
    tokens: !rows.some((row) => known(row.tokens)),
    cost: !rows.some((row) => known(row.cost_usd)),
  };
  return Object.keys(NAMES).filter((key) => !needless[key]);
}

/* "12 trials, 3 cases in 6 lines": of the groups that are shown, and of all. */
function countText(trials: number, all: number, groups: Group[], allGroups: Group[]): string {
  const text = trials === all ? plural(trials, "trial") : `${count(trials)} of ${plural(all, "trial")}`;
  const cases = (some: Group[]) => state.casesOf(some.map((group) => group.rows[0]!));
  const lines = cases(allGroups) < allGroups.length;
  if (allGroups.length === all && !lines) return text;
  return `${text}, ${plural(cases(groups), "case")}${lines ? ` in ${plural(groups.length, "line")}` : ""}`;
}

function HeadCell({ name, title }: { name: string; title: string }) {
  const { sort } = page.filter;
  const direction = sort === name ? "ascending" : sort === `-${name}` ? "descending" : undefined;
  const next = sort === name ? `-${name}` : direction ? null : name;
  return (
    <th scope="col" class={`column-${name}`} aria-sort={direction}>
      <Button
        class="column"
        title={`Sort by ${title.toLowerCase()}`}
        onClick={() => setFilter({ sort: next })}
      >
        {title}
        <span class="sort" aria-hidden="true">
          {direction ? (direction === "ascending" ? " ↑" : " ↓") : ""}
        </span>
      </Button>
    </th>
  );
}

/* The filter above the table: words, statuses, and what else the rows differ by. */
function FilterBar({ rows }: { rows: Row[] }) {
  const counts = tally(rows);
  const flaky = state.casesOf(rows.filter((row) => row.flaky));
  const planned = page.filter.sort === "plan";
  const clear = () => {
    setFilter(NO_FILTER);
    byId("filter-text")?.focus();
  };
  const title =
    "Words that must all be in a case's id, title, tags, suite, engine, or the reason why it failed; " +
    "a word after - must not be there";
  return (
    <div class="filter" role="search">
      <SearchField label="Filter cases by words" hint="Case, title, tag, reason; -not" title={title} />
      <label class="deep" title="Look for the words in messages, answers and tool calls, too">
        <input
          id="filter-deep"
          type="checkbox"
          checked={Boolean(page.filter.deep)}
          onChange={(event) => setFilter({ deep: event.currentTarget.checked ? "1" : null })}
        />{" "}
        in conversations
      </label>
      <div class="chips" role="group" aria-label="Status">
        {Object.keys(STATUS)
          .filter((status) => counts[status])
          .map((status) => (
            <StatusChip status={status} word={STATUS[status]!.word} number={counts[status]!} />
          ))}
        {/* Of cases, and beside the others, which are all trials together. */}
        {flaky ? (
          <StatusChip status="FLAKY" word={flaky === 1 ? "flaky case" : "flaky cases"} number={flaky} />
        ) : null}
      </div>
      {CHOICES.map(([key, all]) => (
        <Choice rows={rows} name={key} all={all} />
      ))}
      <Button
        id="order"
        class="chip"
        title="In the order of the suite, instead of what failed first"
        aria-pressed={planned ? "true" : "false"}
        onClick={() => setFilter({ sort: planned ? null : "plan" })}
      >
        As planned
      </Button>
      <Button
        id="clear"
        class="quiet"
        hidden={!Object.keys(NO_FILTER).some((key) => page.filter[key])}
        onClick={clear}
      >
        Clear
      </Button>
    </div>
  );
}

/* What is typed stays as it is, also with a space at its end; the filter has it without. */
function SearchField(props: { label: string; hint: string; title?: string }) {
  const wanted = page.filter.q || "";
  const [typed, set] = useState(wanted);
  const onInput = (event: { currentTarget: HTMLInputElement }) => {
    set(event.currentTarget.value);
    setFilter({ q: event.currentTarget.value.trim() || null });
  };
  return (
    <input
      id="filter-text"
      type="search"
      placeholder={props.hint}
      title={props.title}
      autocomplete="off"
      spellcheck={false}
      aria-label={props.label}
      aria-keyshortcuts="/"
      aria-controls="rows"
      value={typed.trim() === wanted ? typed : wanted}
      onInput={onInput}
    />
  );
}

const StatusChip = ({ status, word, number }: { status: string; word: string; number: number }) => (
  <Chip name="status" value={status} status={status}>
    <Sign status={status} /> {word} <span class="chip-count">{count(number)}</span>
  </Chip>
);

export function tally(rows: Row[]): Record<string, number> {
  const counts = Object.fromEntries(Object.keys(STATUS).map((status) => [status, 0]));
  for (const row of rows) counts[row.status] = (counts[row.status] || 0) + 1;
  return counts;
}

const CHOICES = [
  ["suite", "All suites"],
  ["engine", "All engines"],
  ["variant", "With and without"],
  ["tag", "All tags"],
] as const;

const VARIANT: Record<string, string> = { with_skill: "with the skill", without_skill: "without the skill" };

function Choice(props: { rows: Row[]; name: "suite" | "engine" | "variant" | "tag"; all: string }) {
  const { rows, name, all } = props;
  const values = new Set(rows.flatMap((row) => (name === "tag" ? row.tags || [] : [row[name]])));
  if (values.size < (name === "tag" ? 1 : 2)) return null;
  return (
    <select
      aria-label={all}
      id={`filter-${name}`}
      value={page.filter[name] || ""}
      onChange={(event) => setFilter({ [name]: event.currentTarget.value || null })}
    >
      <option value="">{all}</option>
      {[...values].sort().map((value) => (
        <option value={value}>{plain(name === "variant" ? VARIANT[value] || value : value)}</option>
      ))}
    </select>
  );
}

interface About {
  columns: string[];
  suites: boolean;
  history: Map<string, CaseHistory>;
  tested: Map<string, CaseReliability | Decided>; // what the analysis says
}

const isLink = (event: Event) =>
  (event.target as Element).closest("a, button") !== null || String(getSelection()) !== "";

/* A case with all its trials, or one that ran once. */
function GroupRow({ group, about }: { group: Group; about: About }) {
  const first = group.rows[0]!;
  const needed = group.rows.filter((row) => row.status !== "NOT_NEEDED");
  const many = group.rows.length > 1;
  const unfolded = page.unfolded.has(group.key);
  const toggle = () => fold(group, !unfolded);
  const aside = [
    about.suites ? first.suite : null,
    state.isBaseline(first) ? "without the skill" : null,
    first.branch_of ? `branch of ${first.branch_of}` : null,
  ].filter(Boolean);
  const onClick = (event: Event) => {
    if (isLink(event)) return;
    if (many) toggle();
    else state.go(trialAddress(first.n));
  };
  const turns = many ? (
    <>
      <TrialDots rows={needed} />
      <Decision of={about.tested.get(group.key)} />
      <Where rows={group.rows} />
    </>
  ) : (
    <TurnDots row={first} />
  );
  return (
    <tr
      class={`row${many ? " group" : ""} status-row-${group.status}`}
      data-n={group.telling.n}
      data-group={group.at}
      onClick={onClick}
    >
      <td class="column-status">
        <Status status={group.status} />
      </td>
      <th scope="row" class="column-case">
        {many ? (
          <Button
            class="toggle"
            aria-expanded={unfolded ? "true" : "false"}
            aria-label={`Trials of ${first.case_id}`}
            onClick={toggle}
          >
            ▸
          </Button>
        ) : null}
        <a href={trialAddress(group.telling.n)} class="case-link">
          {first.case_id}
        </a>
        {first.title ? <span class="case-title">{first.title}</span> : null}
        {aside.length ? <Aside>{aside.join(" · ")}</Aside> : null}
        <FailingFor group={group} history={about.history} />
        {(first.tags || []).map((tag) => (
          <span class="tag">{tag}</span>
        ))}
        <Reasons rows={needed} />
      </th>
      <Numbers rows={needed} about={about} turns={turns} engine={first.engine} />
    </tr>
  );
}

/* The trials of a case, below it; their reasons only where these are different ones. */
function trialRows(group: Group, about: About) {
  if (group.rows.length < 2) return [];
  const failed = group.rows.filter((row) => row.status !== "PASS");
  const reasons = new Set(failed.map((row) => row.reason)).size > 1;
  return group.shown.map((row) => (
    <tr
      key={row.n}
      class={`row trial status-row-${row.status}`}
      data-n={row.n}
      data-group={group.at}
      onClick={(event) => isLink(event) || state.go(trialAddress(row.n))}
    >
      <td class="column-status">
        <Status status={row.status} />
      </td>
      <th scope="row" class="column-case">
        <a href={trialAddress(row.n)} class="trial-name" aria-label={`${row.case_id}, trial ${row.trial}`}>
          trial {row.trial}
        </a>
        {reasons && row.reason && row.status !== "PASS" ? <span class="reason">{row.reason}</span> : null}
      </th>
      <Numbers rows={[row]} about={about} turns={<TurnDots row={row} />} engine="" />
    </tr>
  ));
}

/* The cells after the case, of those columns that are shown; a case's numbers are its trials' means. */
function Numbers(props: { rows: Row[]; about: About; turns: ComponentChildren; engine: string }) {
  const { rows, about, turns, engine } = props;
  const title = rows.length > 1 ? `mean of ${rows.length} trials` : undefined;
  const over = mean(rows, (row) => row.duration_ms);
  // Of trials of which none is over, how long the first of them has gone on.
  const since = known(over) ? null : rows.map((row) => row.started_at).filter(known).sort()[0];
  const cell: Record<string, ComponentChildren> = {
    turns,
    engine,
    score: score(mean(rows, (row) => row.score)),
    time: since ? <Since iso={since} /> : duration(over),
    tokens: tokenText(mean(rows, (row) => row.tokens)),
    cost: cost(mean(rows, (row) => row.cost_usd)),
  };
  return (
    <>
      {about.columns.slice(2).map((key) =>
        key === "turns" || key === "engine" ? (
          <td class={`column-${key}`}>{cell[key]}</td>
        ) : (
          <td class={`column-${key} number`} title={since && key === "time" ? "so far" : title}>
            {cell[key]}
          </td>
        ),
      )}
    </>
  );
}

/* How long it is since `iso`, by the clock of the machine that holds the run; in whole seconds. */
export function Since({ iso }: { iso: string }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const ticking = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(ticking);
  }, []);
  const now = Date.parse(page.index?.run.now || "") + (page.mode === "view" ? Date.now() - page.receivedAt : 0);
  const seconds = Math.max(0, Math.floor((now - Date.parse(iso)) / 1000));
  return <span class="running-time">{seconds < 10 ? `${seconds}\u202fs` : duration(seconds * 1000)}</span>;
}

/* A sign for each turn; and one at the end, where a check of the whole conversation failed. */
function TurnDots({ row }: { row: Row }) {
  const marks = row.turns.map(rowMark);
  const words = marks.map((mark, at) => `turn ${at + 1} ${mark.word}`);
  const end = row.end === false;
  if (end) words.push("a check of the whole conversation failed");
  const text = words.join(", ");
  return (
    <span class="dots" role="img" aria-label={text || "no turns"} title={text}>
      {marks.slice(0, MOST_DOTS).map((mark) => (
        <span class={`dot status-${mark.status}`}>{mark.sign}</span>
      ))}
      {marks.length > MOST_DOTS ? `+${marks.length - MOST_DOTS}` : null}
      {end ? <span class="dot end status-FAIL">✗ end</span> : null}
    </span>
  );
}

/* "3/5", and a sign for each trial that opens it; the trials below, unfolded, are for the keyboard. */
function TrialDots({ rows }: { rows: Row[] }) {
  const passed = rows.filter((row) => row.status === "PASS").length;
  const held = rows.filter(state.hasVerdict).length;
  return (
    <span class="trial-dots">
      <span class="strong" title={`${passed} of ${held} passed`}>
        {held ? `${passed}/${held}` : "–"}
      </span>
      <span class="dots">
        {rows.slice(0, MOST_DOTS).map((row) => {
          const { word, sign } = STATUS[row.status]!;
          const words = `trial ${row.trial}: ${word}`;
          return (
            <a
              href={trialAddress(row.n)}
              class={`dot status-${row.status}`}
              tabIndex={-1}
              title={words}
              aria-label={words}
            >
              {sign}
            </a>
          );
        })}
        {rows.length > MOST_DOTS ? `+${rows.length - MOST_DOTS}` : null}
      </span>
    </span>
  );
}

/* "turn 3 ✗2, end ✗1" */
function Where({ rows }: { rows: Row[] }) {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const failure = state.firstFailure(row);
    if (!failure || failure.at === null) continue;
    const place = failure.at === "end" ? "end" : `turn ${failure.at}`;
    const key = `${place} ${failure.error ? "!" : "✗"}`;
    counts.set(key, (counts.get(key) || 0) + 1);
  }
  if (!counts.size) return null;
  return (
    <span class="where" title="Where trials first failed">
      {[...counts].map(([key, number]) => key + number).join(", ")}
    </span>
  );
}

/* Why its trials failed, each reason once. */
function Reasons({ rows }: { rows: Row[] }) {
  const counts = new Map<string, number>();
  for (const row of rows) {
    if (row.status === "PASS" || !row.reason) continue;
    if (rows.length > 1 && row.status !== "FAIL" && row.status !== "ERROR") continue;
    counts.set(row.reason, (counts.get(row.reason) || 0) + 1);
  }
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  const others = sorted.length - MOST_REASONS;
  return (
    <>
      {sorted.slice(0, MOST_REASONS).map(([reason, number]) => (
        <span class="reason">
          {rows.length > 1 ? <span class="reason-count">{`${number} of ${rows.length} `}</span> : null}
          {reason}
        </span>
      ))}
      {others > 0 ? <span class="reason">and {plural(others, "other reason")}</span> : null}
    </>
  );
}

/* How long it has failed, as far as past runs tell. */
function FailingFor({ group, history }: { group: Group; history: Map<string, CaseHistory> }) {
  const since = history.get(group.key)?.failing_since;
  if (!since || !/FAIL|FLAKY/.test(group.status)) return null;
  const day = time(since.started_at);
  const [passed, held] = since.before || [];
  const title = since.before ? `since ${day}: before, ${passed} of ${held} passed` : `failing since ${day}`;
  const text = since.runs > 1 ? `failing for ${since.runs} runs` : "new";
  return (
    <span class="tag" title={title}>
      {since.before ? "passes less often" : text}
    </span>
  );
}

const KIND: Record<string, [string, string]> = {
  above: ["surely above ", "PASS"],
  below: ["surely below ", "FAIL"],
  undecided: ["undecided at ", "SKIP"],
};

/* What `--until-decided` came to, of a case of the analysis; `before`: what stands first. */
export function Decision(props: { of: CaseReliability | Decided | undefined; before?: string }) {
  const decision = props.of?.decision;
  if (!decision || !KIND[decision.verdict]) return null;
  const { verdict, threshold, error_rate: chance, trials, saved } = decision;
  // A threshold may have a part of a percent, as 0.995.
  const level = (share: number) => `${Math.round(share * 1000) / 10}\u202f%`;
  const open = verdict === "undecided" && (props.of as CaseReliability).not_run;
  const [word, status] = open ? ["not decided yet at ", "SKIP"] : KIND[verdict]!;
  const title = `Of a case at ${level(threshold)} itself it would be said wrongly at most in ${level(chance)} of all runs`;
  return (
    <span class="decision" title={title}>
      {props.before}
      <span class={`status-${status}`}>{word + level(threshold)}</span>{" "}
      <Aside>{`after ${plural(trials, "trial")}${saved ? `, ${count(saved)} not needed` : ""}`}</Aside>
    </span>
  );
}

/* The start page of `skillup view`: every run of a folder, newest first; of many, the first on request. */
const FIRST = 100;
const RUN_STATE: Record<string, [string, string]> = {
  running: ["live", "running"],
  unfinished: ["tag", "not finished"],
  damaged: ["tag", "damaged"],
};

export function RunsPage({ runs }: { runs: RunLine[] }) {
  const words = (page.filter.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  const found = runs.filter((run) => {
    const parts = [run.id, run.run_id, run.status, ...run.suites, ...run.engines];
    const text = parts.filter(Boolean).join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const some = page.limit > CHUNK ? found : found.slice(0, FIRST);
  const showAll = () => {
    more(Infinity);
    rows()[some.length]?.querySelector("a")?.focus({ preventScroll: true });
  };
  const all = plural(runs.length, "run");
  return (
    <section class="cases">
      <h1>Runs</h1>
      {runs.length ? null : (
        <p class="notice">
          There is no run here yet. <code>skillup run</code> makes one.
        </p>
      )}
      <div class="filter" role="search">
        <SearchField label="Filter runs by words" hint="Filter runs" />
        <output id="shown" class="shown">
          {found.length === runs.length ? all : `${found.length} of ${all}`}
        </output>
      </div>
      <table class="cases-table runs-table">
        <caption class="visually-hidden">All runs, newest first</caption>
        <thead>
          <tr>
            {["Started", "Run", "Suites", "Engines", "Result", "Time", "Cost"].map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody id="rows">
          {some.map((run) => (
            <RunRow key={run.id} run={run} />
          ))}
        </tbody>
      </table>
      <Button id="more" class="quiet" hidden={some.length === found.length} onClick={showAll}>
        {`Show ${count(found.length - some.length)} more`}
      </Button>
    </section>
  );
}

function RunRow({ run }: { run: RunLine }) {
  const [name, word] = RUN_STATE[run.status] || ["", ""];
  const far = name && run.status !== "damaged" ? ` ${count(run.done)} of ${count(run.planned)}` : "";
  return (
    <tr data-run={run.id}>
      <td>{time(run.started_at)}</td>
      <th scope="row">
        <a class="case-link" href={`#/run/${encodeURIComponent(run.id)}/`}>
          {run.id}
        </a>{" "}
        {word ? <span class={name}>{word + far}</span> : null}
        {run.problem ? <span class="reason">{run.problem}</span> : null}
      </th>
      <td>{run.suites.join(", ")}</td>
      <td>{run.engines.join(", ")}</td>
      <td>
        <span class="run-counts">
          {Object.entries(run.counts || {})
            .filter(([, number]) => number)
            .map(([status, number]) => (
              <span class={`status status-${status}`} title={STATUS[status]!.word}>
                <Sign status={status} /> {count(number)}
                <Hidden text={` ${STATUS[status]!.word}`} />
              </span>
            ))}
        </span>
      </td>
      <td class="number">{duration(run.duration_ms)}</td>
      <td class="number">{cost(run.cost_usd)}</td>
    </tr>
  );
}
