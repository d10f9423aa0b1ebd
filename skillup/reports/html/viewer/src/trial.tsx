/* A trial: its head (which it is, its verdict, what it took, earlier attempts) and its
   conversation; one that is going on, or has not begun. */
import type { ComponentChildren } from "preact";
import type { Judging, Row, Simulated, TrialGrade } from "../dist/types";
import type { Attempt, FamilyTrial, Trial } from "./data";
import { ErrorBox, Jump, RawLinks, Turns } from "./conversation";
import { failedPart } from "./data";
import { Aside, Fold, Hidden, Sign, Status } from "./dom";
import { cost, duration, known, plural, score, time, usageText } from "./text/format";
import { useHits } from "./text/hits";
import { STATUS, back, comparable, compareAddress, failingNeighbours, page, rowOf } from "./state";
import { trialAddress, trialName, trialsOf, hasRun } from "./state";
import { engineText } from "./summary";
import { order } from "./table/table";

export function TrialPage({ detail }: { detail: Trial | null }) {
  const row = rowOf(page.route.n);
  useHits();
  if (!detail || detail.problem || detail.waiting)
    return <NoTrial row={row} problem={page.problem || detail?.problem || ""} />;
  return (
    <article class="case" key={`${page.runId}/${detail.n}`}>
      <TrialHead detail={detail} row={row} />
      <Turns detail={detail} />
      {detail.live ? (
        <p class="notice live-end">
          <span class="live">running</span>
          {` ${detail.live}. Turns are shown when they have ended; checks, with the trial.`}
        </p>
      ) : null}
    </article>
  );
}

const Way = ({ children }: { children?: ComponentChildren }) => (
  <p class="way">
    <a href={back()}>← All conversations</a>
    {children}
  </p>
);

export const NoTrial = ({ row, problem }: { row: Row | null; problem: string }) => (
  <article class="case">
    <Way />
    <h1>{row ? row.case_id : "Not found"}</h1>
    {row ? (
      <p class="verdict">
        <Status status={row.status} /> {row.reason || ""}
      </p>
    ) : null}
    {row && !hasRun(row) ? null : <p class="notice">It cannot be shown: {problem}</p>}
  </article>
);

/* The streams of the last turn that has any. */
export const lastRaw = (detail: Trial) =>
  detail.turns.filter((turn) => turn.raw?.length).at(-1)?.raw;

export function TrialHead({ detail, row }: { detail: Trial; row: Row | null }) {
  const { grade } = detail;
  const status = grade?.status || row?.status || "NOT_RUN";
  const part = /FAIL|ERROR|SKIP/.test(status) ? failedPart(detail) : null;
  const told = detail.error && grade?.reason.endsWith(detail.error.message); // by the box below
  return (
    <header class="case-head">
      <Way>
        <Neighbours row={row} />
      </Way>
      <h1>
        {detail.case_id} {detail.title ? <span class="case-title">{detail.title}</span> : null}
      </h1>
      <p class="verdict">
        <Status status={status} />{" "}
        {known(grade?.score) && /PASS|FAIL/.test(status) ? (
          <span class="score">score {score(grade.score)}</span>
        ) : null}{" "}
        {grade?.reason && !told ? (
          <span class="verdict-reason">
            {part === null ? (
              grade.reason
            ) : (
              <Jump n={detail.n} part={part} text={grade.reason} name="to-check" />
            )}
          </span>
        ) : null}
      </p>
      {(grade?.warnings || []).map((text) => (
        <p class="notice">{text}</p>
      ))}
      {detail.skipped ? <p class="notice">Not run: {detail.skipped}</p> : null}
      <ErrorBox error={detail.error} title="The trial could not run" raw={lastRaw(detail)} />
      <Attempts detail={detail} />
      <div class="siblings">
        <TrialLinks n={detail.n} />
        <CompareLinks n={detail.n} />
      </div>
      <Facts detail={detail} grade={grade} />
      <Family detail={detail} />
    </header>
  );
}

function Neighbours({ row }: { row: Row | null }) {
  const { next, previous } = failingNeighbours(order(), row);
  if (!next && !previous) return null;
  const link = (to: Row, text: string, key: string) => (
    <a href={trialAddress(to.n)} title={to.case_id} aria-keyshortcuts={key}>
      {text}
    </a>
  );
  return (
    <span class="neighbours">
      {previous ? link(previous, "↑ previous failing case", "p") : null}
      {previous && next ? " · " : null}
      {next ? link(next, "↓ next failing case", "n") : null}
    </span>
  );
}

function Facts({ detail, grade }: { detail: Trial; grade: TrialGrade | null }) {
  const engine = detail.engine || {};
  const spent = (part: Pick<Judging, "cost_usd" | "usage"> | null) =>
    part ? [cost(part.cost_usd), usageText(part.usage)].filter(Boolean).join(", ") : "";
  const calls = (part: Judging | Simulated, number: string) =>
    [number, spent(part), (part.models || []).join(", ")].filter(Boolean).join(", ");
  const judging = grade?.judging;
  const user = grade?.simulator;
  const cached = judging?.cached_calls ? ` (${judging.cached_calls} from the cache)` : "";
  const how = [engine.permission, engine.isolation].filter(Boolean).join(", ");
  const attempt = detail.attempt > 1 ? `, attempt ${detail.attempt}` : "";
  const variables = Object.entries(detail.variables).map(
    ([name, value]) => `<<${name}>> = ${value}`,
  );
  const skills = detail.skills.map(({ name, role }) =>
    role === "distractor" ? `${name} (distractor)` : name,
  );
  const single = grade?.execution_mode === "single_shot";
  const facts: Array<[string, ComponentChildren]> = [
    ["suite", detail.suite],
    ["engine", engine.profile && [engineText(engine), how ? <Aside> {how}</Aside> : null]],
    ["variant", detail.variant === "without_skill" && "without the skill"],
    ["trial", (detail.trial > 1 || attempt) && `${detail.trial}${attempt}`],
    ["mode", single && "single shot: all turns were sent as one message"],
    ["time", `${duration(grade?.duration_ms)} from ${time(detail.started_at)}`],
    ["agent", spent(grade)],
    ["judges", judging?.calls && calls(judging, plural(judging.calls, "request") + cached)],
    ["simulated user", user && calls(user, plural(user.messages, "message"))],
    ["session", detail.session_id && <code>{detail.session_id}</code>],
    ["skills", skills.join(", ")],
    ["variables", variables.length > 0 && variables.join(", ")],
    ["notes", detail.notes?.length && detail.notes.map((note) => <p class="note">{note}</p>)],
    ["files", detail.raw?.length && <RawLinks raw={detail.raw} />],
  ];
  return (
    <dl class="facts">
      {facts.map(([label, inside]) =>
        inside ? (
          <div>
            <dt>{label}</dt>
            <dd>{inside}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

/* Earlier attempts: how each ended, with its conversation, folded. */
function Attempts({ detail }: { detail: Trial }) {
  if (!detail.attempts?.length) return null;
  return (
    <section class="notice attempts" aria-label="Earlier attempts">
      <p>This is attempt {detail.attempt}. </p>
      {detail.attempts.map((one) => (
        <>
          <p>
            Attempt {one.attempt} ended as{" "}
            {one.error ? <Status status="ERROR" /> : `not to be counted: ${one.reason}`}{" "}
            {one.error ? `${one.error.kind}: ${one.error.message}` : null}
          </p>
          {one.turns.length ? (
            <Fold
              class="attempt"
              summary="Its conversation"
              inside={() => <AttemptView detail={detail} attempt={one} />}
            />
          ) : null}
        </>
      ))}
    </section>
  );
}

function AttemptView({ detail, attempt }: { detail: Trial; attempt: Attempt }) {
  const shown = { ...detail, turns: attempt.turns, conversation_checks: [], simulated_end: null };
  return (
    <div class="attempt-turns">
      <Turns detail={shown} />
    </div>
  );
}

/* To a trial, with how it came out; `current`: the one that is shown. */
const statusLink = (to: Pick<Row, "status">, text: string, href: string, current: boolean) => (
  <a href={href} class={`status-${to.status}`} aria-current={current ? "page" : undefined}>
    <Sign status={to.status} /> {text}
    <Hidden text={` ${STATUS[to.status]!.word}`} />
  </a>
);

/* Cases that branch from one conversation: a tree of its trials, each below the one that it forked
   from. */
function Family({ detail }: { detail: Trial }) {
  const all = detail.family?.tree || [];
  if (!all.length) return null;
  const below = (parent: number | null): ComponentChildren => {
    const forks = all.filter((one) => one.parent_n === parent);
    return forks.length ? <ul>{forks.map(branch)}</ul> : null;
  };
  const branch = (trial: FamilyTrial) => (
    <li>
      {statusLink(trial, trial.case_id, trialAddress(trial.n), trial.n === detail.n)}
      {trial.forks_at > 1 ? <Aside> its own from turn {trial.forks_at}</Aside> : null}
      {below(trial.n)}
    </li>
  );
  return (
    <nav class="family" aria-label="Branches of one conversation">
      <h2 class="minor">Branches of one conversation</h2>
      {below(null)}
    </nav>
  );
}

/* The other trials of a case. */
function TrialLinks({ n }: { n: number }) {
  const row = rowOf(n);
  const all = row ? trialsOf(row) : [];
  if (!row || all.length < 2) return null;
  return (
    <nav class="trials" aria-label="Trials of this case">
      {all.map((one) => statusLink(one, trialName(one, all), trialAddress(one.n), one === row))}
    </nav>
  );
}

/* The trials to put beside it, the most telling first. `shown`: the one that is. */
export function CompareLinks({ n, shown = null }: { n: number; shown?: number | null }) {
  const others = comparable(n);
  if (!others.length) return null;
  const all = trialsOf(others[0]!);
  const link = (row: Row) =>
    statusLink(row, trialName(row, all), compareAddress(n, row.n), row.n === shown);
  return (
    <nav class="trials compare" aria-label="Compare with another trial">
      <span class="label">compare with</span>
      {others.map(link)}
    </nav>
  );
}
