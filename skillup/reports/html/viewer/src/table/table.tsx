/* The table of cases: a line each, unfolding to its trials, with the filter above. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { CaseHistory, CaseReliability, Decided, Index, Row } from "../../dist/types";
import { Decision, FailingFor, Reasons, TrialDots, TurnDots, Where } from "./cells";
import { conversationText, readConversations } from "../data";
import { Aside, Button, Status, announce } from "../dom";
import { FilterBar } from "./filter";
import { cost, count, duration, known, mean, plural, score, tokenText } from "../text/format";
import * as state from "../state";
import { FIRST, page, setFilter, trialAddress, view, type Group } from "../state";

const NAMES: Record<string, string> = {
  ...{ status: "Status", case: "Case", turns: "Turns", engine: "Engine", score: "Score" },
  ...{ time: "Time", tokens: "Tokens", cost: "Cost" },
};

export const shown = (): Group[] =>
  page.index ? state.shownGroups(page.index.rows, page.filter, conversationText) : [];
export const order = (): Row[] => shown().flatMap((group) => group.shown);

/* Unfolds (true) or folds a case. */
function fold(group: Group, unfolded: boolean): void {
  if (group.rows.length < 2 || page.unfolded.has(group.key) === unfolded) return;
  if (unfolded) page.unfolded.add(group.key);
  else page.unfolded.delete(group.key);
  announce(unfolded ? `${plural(group.shown.length, "trial")} shown below` : "Trials folded");
  view.update();
}

function focusRow(row: Element | undefined, block: ScrollLogicalPosition): void {
  row?.querySelector("a")?.focus({ preventScroll: true });
  row?.scrollIntoView({ block });
}

const FITTING = 4; // So many columns fit beside the case; more are scrolled
const rows = () => [...document.querySelectorAll<HTMLElement>("#rows tr")];

export function moveRow(step: number): void {
  const at = rows().findIndex((row) => row.contains(document.activeElement));
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
    focusRow(
      rows().find((one) => one.dataset.group === row.dataset.group),
      "nearest",
    );
  fold(group, unfolded);
}

/* The line of a trial that was left, with the focus. */
export function showTrial(n: number): void {
  const group = shown().find((one) => one.rows.some((row) => row.n === n));
  const lines = rows().filter((row) => row.dataset.group === String(group?.at));
  focusRow(lines.slice(1).find((row) => row.dataset.n === String(n)) || lines[0], "center");
}

export function CaseTable({ index }: { index: Index }) {
  const all = state.groupsOf(index.rows);
  const groups = shown();
  const several = all.some((group) => group.rows.length > 1);
  const byCase = <T extends CaseHistory | CaseReliability | Decided>(
    list: T[] | null | undefined,
  ) => new Map((list || []).map((one) => [state.caseKey(one), one]));
  const sides = state.sidesOf(state.ofSides(index.rows, page.filter));
  const about: About = {
    columns: sides.length ? ["status", "case"] : columnsOf(state.ofSides(index.rows, page.filter)),
    sides,
    suites: (index.run.suites || []).length > 1,
    history: byCase(index.history),
    tested: byCase<CaseReliability | Decided>(index.analysis?.cases || index.decided),
  };
  const decided = [...about.tested.values()].some((one) => one.decision);
  const drawn = page.all ? groups : groups.slice(0, FIRST);
  const trials = groups.flatMap((group) => group.shown).length;
  const text = countText(trials, index.rows, groups, all);
  const { q, deep } = page.filter;
  useEffect(() => {
    announce(`${text} shown`);
    if (deep && q) readConversations();
  }, [text, q, deep]);
  return (
    <section class="cases" id="cases" aria-labelledby="cases-title">
      <div class="cases-head">
        <h2 id="cases-title">Conversations</h2>
        <output id="shown" for="filter-text" class="shown">
          {page.reading ? "reading conversations" : text}
        </output>
      </div>
      <FilterBar rows={index.rows} />
      <div class={sides.length > FITTING ? "many-sides" : undefined}>
        <table
          class={`cases-table${several ? " grouped" : ""}${sides.length ? " sided" : ""}${decided ? " decided" : ""}`}>
          <caption class="visually-hidden">Every case; its name opens the conversation</caption>
          <thead>
            <tr>
              {about.columns.map((key) => (
                <HeadCell name={key} title={key === "turns" && several ? "Trials" : NAMES[key]!} />
              ))}
              {sides.map((side) => (
                <th scope="col" class="column-side">
                  {side.title}
                </th>
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
      </div>
      <p class="nothing" id="nothing" hidden={groups.length > 0}>
        No case matches this filter.
      </p>
      <MoreButton shown={drawn.length} all={groups.length} />
    </section>
  );
}

/* Draws the lines that are not drawn yet, of a table that is long. */
export function MoreButton({ shown, all }: { shown: number; all: number }) {
  const onClick = () => {
    page.all = true;
    view.update();
    requestAnimationFrame(() => focusRow(rows()[shown], "nearest"));
  };
  return (
    <Button id="more" class="quiet" hidden={shown >= all} onClick={onClick}>
      {`Show ${count(all - shown)} more`}
    </Button>
  );
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

/* "12 of 40 trials, 3 cases": of the groups that are shown, and of all. */
function countText(trials: number, rows: Row[], groups: Group[], allGroups: Group[]): string {
  const status = { status: page.filter.status };
  const counted = (row: Row) => row.status !== "NOT_NEEDED" || state.matches(row, status);
  const all = rows.filter(counted).length;
  const text =
    trials === all ? plural(trials, "trial") : `${count(trials)} of ${plural(all, "trial")}`;
  if (allGroups.length === all) return text;
  return `${text}, ${plural(state.casesOf(groups.map((group) => group.rows[0]!)), "case")}`;
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

interface About {
  columns: string[];
  sides: ReturnType<typeof state.sidesOf>; // instead of the numbers
  suites: boolean;
  history: Map<string, CaseHistory>;
  tested: Map<string, CaseReliability | Decided>; // what the analysis says
}

const isLink = (event: Event) =>
  (event.target as Element).closest("a, button") !== null || String(getSelection()) !== "";

const neededOf = (group: Group) => group.rows.filter((row) => row.status !== "NOT_NEEDED");

/* What became of a case on one engine, with or without the skill. */
function SideCell({ side, about }: { side: Group | undefined; about: About }) {
  if (!side) return <Aside>–</Aside>;
  const [first] = side.rows;
  return (
    <>
      {side.rows.length > 1 ? (
        <TrialDots rows={neededOf(side)} />
      ) : (
        <a href={trialAddress(first!.n)}>
          <Status status={side.status} />
        </a>
      )}
      <Aside>
        {[duration(mean(side.rows, (row) => row.duration_ms))]
          .concat(cost(mean(side.rows, (row) => row.cost_usd)))
          .filter((text) => text && text !== "–")
          .join(" · ")}
      </Aside>
      <FailingFor of={side} since={about.history.get(side.key)?.failing_since} />
      <Decision of={about.tested.get(side.key)} />
      <Where rows={side.rows} />
    </>
  );
}

/* A case with all its trials, or one that ran once. */
function GroupRow({ group, about }: { group: Group; about: About }) {
  const first = group.rows[0]!;
  const needed = neededOf(group);
  const ours = needed.filter((row) => !state.isBaseline(row));
  const many = group.rows.length > 1;
  const unfolded = page.unfolded.has(group.key);
  const toggle = () => fold(group, !unfolded);
  const aside = [
    about.suites ? first.suite : null,
    state.isBaseline(first) && !about.sides.length ? "without the skill" : null,
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
        <FailingFor of={group} since={about.history.get(group.key)?.failing_since} />
        {(first.tags || []).map((tag) => (
          <span class="tag">{tag}</span>
        ))}
        <Reasons rows={ours.length ? ours : needed} />
      </th>
      {about.sides.map(({ key, title }) => (
        <td class="column-side" data-side={title}>
          <SideCell side={state.sideOf(group, key)} about={about} />
        </td>
      ))}
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
        <a
          href={trialAddress(row.n)}
          class="trial-name"
          aria-label={`${row.case_id}, ${state.trialName(row, group.rows)}`}
        >
          {state.trialName(row, group.rows)}
        </a>
        {reasons && row.status !== "PASS" ? <span class="reason">{row.reason}</span> : null}
      </th>
      {about.sides.length ? (
        <td colSpan={about.sides.length} class="column-took">
          <TurnDots row={row} /> <Aside>{numbersText(row)}</Aside>
        </td>
      ) : null}
      <Numbers rows={[row]} about={about} turns={<TurnDots row={row} />} engine="" />
    </tr>
  ));
}

const numbersText = (row: Row) =>
  [
    known(row.score) && `score ${score(row.score)}`,
    known(row.duration_ms) && duration(row.duration_ms),
    known(row.tokens) && `${tokenText(row.tokens)} tokens`,
    known(row.cost_usd) && cost(row.cost_usd),
  ]
    .filter(Boolean)
    .join(" · ");

/* The cells after the case, of those columns that are shown; a case's numbers are its trials'
   means. */
function Numbers(props: { rows: Row[]; about: About; turns: ComponentChildren; engine: string }) {
  const { rows, about, turns, engine } = props;
  const title = rows.length > 1 ? `mean of ${rows.length} trials` : undefined;
  const cell: Record<string, ComponentChildren> = {
    turns,
    engine,
    score: score(mean(rows, (row) => row.score)),
    time: duration(mean(rows, (row) => row.duration_ms)),
    tokens: tokenText(mean(rows, (row) => row.tokens)),
    cost: cost(mean(rows, (row) => row.cost_usd)),
  };
  return (
    <>
      {about.columns.slice(2).map((key) =>
        key === "turns" || key === "engine" ? (
          <td class={`column-${key}`}>{cell[key]}</td>
        ) : (
          <td class={`column-${key} number`} title={title}>
            {cell[key]}
          </td>
        ),
      )}
    </>
  );
}
