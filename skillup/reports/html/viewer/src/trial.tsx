/* A trial: its head (which it is, its verdict, what it took), its conversation, earlier attempts; one that
   is going on, or has not begun; and the words of a search in it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Attempt, FamilyNode, Judging, Row, Simulated, Trial, TrialGrade, TurnUnderWay } from "../dist/types";
import { Copyable, ErrorBox, RawLinks, Speech, Turns } from "./conversation";
import { endMark, failedPart, turnMark, type Mark } from "./data";
import { Aside, Button, Fold, Hidden, Sign, Status, announce, behaviour, unfoldAround, type Foldable } from "./dom";
import { cost, count, duration, known, plural, score, time, usageText } from "./text/format";
import { STATUS, back, comparable, compareAddress, failingNeighbours, page, rowOf } from "./state";
import { trialAddress, trialName, trialsOf } from "./state";
import { engineText } from "./summary";
import { order } from "./table";
import { Text } from "./text/text";

export function TrialPage({ detail }: { detail: Trial | null }) {
  const row = rowOf(page.route.n);
  if (!detail || detail.problem)
    return <NoTrial row={row} problem={page.problem || detail?.problem || ""} />;
  if (detail.waiting) return <Waiting row={row} detail={detail} />;
  return (
    <article class="case" key={`${page.runId}/${detail.n}`}>
      <TrialHead detail={detail} row={row} />
      <Hits key={`${page.filter.q}/${page.filter.deep}`} />
      <Turns detail={detail} />
      {(detail.attempts || [])
        .filter((one) => one.turns.length)
        .map((one) => (
          <Fold
            class="attempt"
            data-attempt={one.attempt}
            summary={`Attempt ${one.attempt}, which was not counted`}
            inside={() => <AttemptView detail={detail} attempt={one} />}
          />
        ))}
      {detail.live ? <LiveEnd live={detail.live} turns={detail.under_way || []} /> : null}
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
    <p class="notice">
      {row && /RUNNING|WAITING|NOT_HELD|NOT_NEEDED/.test(row.status)
        ? "This conversation has not been held to its end."
        : `It cannot be shown: ${problem}`}
    </p>
  </article>
);

const Waiting = ({ row, detail }: { row: Row | null; detail: Trial }) => (
  <article class="case">
    <Way />
    <h1>{detail.case_id}</h1>
    <p class="verdict">
      <Status status={row?.status || "NOT_HELD"} /> {detail.waiting}
    </p>
    {page.index?.run.running ? (
      <p class="notice">The conversation shows itself here when it begins.</p>
    ) : null}
  </article>
);

/* Under the turns that are there: what is being done now. */
const LiveEnd = ({ live, turns }: { live: string; turns: TurnUnderWay[] }) => (
  <section class="live-end" aria-label="Under way">
    {turns.map((turn) => (
      <div class="turn under-way">
        <header class="turn-head">
          <h3>Turn {turn.turn_number}</h3>{" "}
          {turn.status === "running" ? <Status status="RUNNING" /> : <Aside>over</Aside>}
          <span class="turn-facts">
            <RawLinks raw={turn.raw} />
          </span>
        </header>
        {turn.message ? (
          <Speech name="user" who="User" aside="as the case has it">
            <Text text={turn.message} />
          </Speech>
        ) : null}
      </div>
    ))}
    <p class="notice">
      <span class="live">running</span>
      {` ${live}. Turns show themselves here when they can be read; checks, when the trial is over.`}
    </p>
  </section>
);

/* The streams of the last turn that has any. */
export const lastRaw = (detail: Trial) => detail.turns.filter((turn) => turn.raw?.length).at(-1)?.raw;

export function TrialHead({ detail, row }: { detail: Trial; row: Row | null }) {
  const { grade } = detail;
  const status = grade?.status || row?.status || "NOT_HELD";
  const part = /FAIL|ERROR|SKIP/.test(status) ? failedPart(detail) : null;
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
        {grade?.reason ? (
          <span class="verdict-reason">
            {part === null ? (
              grade.reason
            ) : (
              <a
                href={trialAddress(detail.n, part)}
                class="jump to-check"
                data-turn={part}
                title="Show the check"
              >
                {grade.reason}
              </a>
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
      <TurnLinks detail={detail} />
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
  const spent = (part: Pick<Judging, "cost_usd" | "usage"> | null | undefined) =>
    part
      ? [cost(part.cost_usd), usageText(part.usage)].filter((text) => text && text !== "–").join(", ")
      : "";
  const calls = (part: Judging | Simulated, number: string) =>
    [number, spent(part), (part.models || []).join(", ")].filter(Boolean).join(", ");
  const judging = grade?.judging;
  const user = grade?.simulator;
  const cached = judging?.cached_calls ? ` (${judging.cached_calls} from the cache)` : "";
  const how = [engine.permission, engine.isolation].filter(Boolean).join(", ");
  const attempt = detail.attempt > 1 ? `, attempt ${detail.attempt}` : "";
  const variables = Object.entries(detail.variables || {});
  const single = grade?.execution_mode === "single_shot";
  const facts: Array<[string, ComponentChildren]> = [
    ["suite", detail.suite],
    ["engine", engine.profile && [engineText(engine), how ? <Aside> {how}</Aside> : null]],
    ["variant", detail.variant === "without_skill" && "without the skill"],
    ["trial", (detail.trial > 1 || attempt) && `${detail.trial}${attempt}`],
    ["mode", single && "single shot: all turns were sent as one message"],
    [
      "time",
      (known(grade?.duration_ms) || detail.started_at) && [
        known(grade?.duration_ms) ? duration(grade.duration_ms) : null,
        detail.started_at ? <Aside> from {time(detail.started_at)}</Aside> : null,
      ],
    ],
    ["agent", spent(grade)],
    ["judges", judging?.calls && calls(judging, plural(judging.calls, "request") + cached)],
    ["simulated user", user && calls(user, plural(user.messages, "message"))],
    ["session", detail.session_id && <Copyable text={detail.session_id} what="session id" />],
    [
      "skills",
      detail.skills?.length &&
        detail.skills.map((skill, at) => [
          at ? ", " : null,
          <span title={`sha256 ${skill.sha256}`}>
            {skill.name}
            {skill.role === "distractor" ? <Aside> (distractor)</Aside> : null}
          </span>,
        ]),
    ],
    [
      "variables",
      variables.length > 0 && (
        <Fold
          summary={plural(variables.length, "variable")}
          inside={() => (
            <ul class="plain">
              {variables.map(([name, value]) => (
                <li>
                  <code>{`<<${name}>>`}</code> = <span>{String(value)}</span>
                </li>
              ))}
            </ul>
          )}
        />
      ),
    ],
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

function TurnLinks({ detail }: { detail: Trial }) {
  const end = endMark(detail);
  if (detail.turns.length + (end ? 1 : 0) < 2) return null;
  const chip = (part: number | "end", mark: Mark, title: string) => (
    <a
      href={trialAddress(detail.n, part)}
      class={`jump status-${mark.status}`}
      data-turn={part}
      title={title}
    >
      <span class="sign" aria-hidden="true">
        {mark.sign}
      </span>{" "}
      {part}
      <Hidden text={`, ${mark.word}`} />
    </a>
  );
  return (
    <nav class="turn-links" aria-label="Turns">
      {detail.turns.map((turn) =>
        chip(turn.turn_number, turnMark(turn), (turn.content || "").slice(0, 120)),
      )}
      {end ? chip("end", end, "Checks of the whole conversation") : null}
    </nav>
  );
}

/* Earlier attempts: how each ended. */
function Attempts({ detail }: { detail: Trial }) {
  if (!detail.attempts?.length) return null;
  const show = (attempt: number) => {
    const fold = document.querySelector<HTMLElement>(`.attempt[data-attempt="${attempt}"]`);
    if (!fold) return;
    unfoldAround(fold);
    fold.querySelector("summary")?.focus({ preventScroll: true });
    fold.scrollIntoView({ block: "start", behavior: behaviour() });
  };
  return (
    <section class="notice attempts" aria-label="Earlier attempts">
      <p>This is attempt {detail.attempt}. </p>
      {detail.attempts.map((one) => (
        <p>
          Attempt {one.attempt} ended as{" "}
          {one.error ? (
            <>
              <Status status="ERROR" /> <code>{one.error.kind}</code>: {one.error.message}{" "}
            </>
          ) : (
            `not to be counted${one.reason ? `: ${one.reason}` : ""} `
          )}
          {one.turns.length ? (
            <Button class="quiet show-evidence" onClick={() => show(one.attempt)}>
              Show its conversation
            </Button>
          ) : null}{" "}
          <RawLinks raw={one.raw} />
        </p>
      ))}
    </section>
  );
}

function AttemptView({ detail, attempt }: { detail: Trial; attempt: Attempt }) {
  const shown: Trial = { ...detail, turns: attempt.turns, conversation_checks: [], simulated_end: null };
  return (
    <>
      {attempt.turns.some((turn) => turn.error) ? null : (
        <ErrorBox error={attempt.error} title="The attempt could not run" raw={attempt.raw} />
      )}
      <div class="attempt-turns">
        <Turns detail={shown} />
      </div>
    </>
  );
}

/* Cases that branch from one conversation: a tree, with links to the siblings. What several of them share
   and no case is by itself has a line of its own. */
function Family({ detail }: { detail: Trial }) {
  const { family } = detail;
  if (!family?.shape || !family.tree?.length) return null;
  const trials = new Map(family.tree.map((one) => [one.job, one]));
  const branch = (node: FamilyNode): ComponentChildren => {
    const trial = trials.get(node.job || "");
    const [first, last] = node.shared || [];
    const turns = first === last ? `turn ${first}` : `turns ${first}–${last}`;
    return (
      <li>
        {trial ? (
          <a
            href={trialAddress(trial.n)}
            aria-current={trial.n === detail.n ? "page" : undefined}
            class={`status-${trial.status}`}
          >
            <Sign status={trial.status} /> {trial.case_id}
            <Hidden text={` ${STATUS[trial.status]!.word}`} />
          </a>
        ) : (
          <span class="shared-turns">{node.name || ""} </span>
        )}
        {trial ? null : <Aside>{turns} shared</Aside>}
        {trial && node.own_from > 1 ? <Aside> its own from turn {node.own_from}</Aside> : null}
        {node.children.length ? <ul>{node.children.map(branch)}</ul> : null}
      </li>
    );
  };
  return (
    <nav class="family" aria-label="Branches of one conversation">
      <h2 class="minor">Branches of one conversation</h2>
      <ul>{branch(family.shape)}</ul>
    </nav>
  );
}

/* The other trials of a case: a few as links beside each other; more of them in a fold, whose line says
   which one is shown and how all came out. */
const FEW = 6;

const trialLink = (row: Row, all: Row[], href: string, current: boolean) => (
  <a href={href} class={`trial-link status-${row.status}`} aria-current={current ? "page" : undefined}>
    <Sign status={row.status} /> {trialName(row, all)}
    <Hidden text={` ${STATUS[row.status]!.word}`} />
  </a>
);

const MoreTrials = ({ summary, links }: { summary: ComponentChildren; links: ComponentChildren }) => (
  <Fold class="more-trials" summary={summary} inside={() => <span class="trials">{links}</span>} />
);

function TrialLinks({ n }: { n: number }) {
  const row = rowOf(n);
  const all = row ? trialsOf(row) : [];
  if (!row || all.length < 2) return null;
  const links = all.map((one) => trialLink(one, all, trialAddress(one.n), one === row));
  const counts = new Map<string, number>();
  for (const one of all) counts.set(one.status, (counts.get(one.status) || 0) + 1);
  const summary = (
    <>
      <Sign status={row.status} /> <strong>{trialName(row, all)}</strong>
      {` of ${plural(all.length, "trial")}:`}
      {[...counts].map(([status, number]) => [
        " ",
        <span class={`status-${status}`}>
          <Sign status={status} /> {count(number)}
          <Hidden text={` ${STATUS[status]!.word}`} />
        </span>,
      ])}
    </>
  );
  return (
    <nav class="trials" aria-label="Trials of this case">
      {all.length <= FEW ? links : <MoreTrials summary={summary} links={links} />}
    </nav>
  );
}

/* The trials to put beside it, the most telling first. `shown`: the one that is. */
export function CompareLinks({ n, shown = null }: { n: number; shown?: number | null }) {
  const others = comparable(n);
  if (!others.length) return null;
  const all = trialsOf(others[0]!);
  const link = (row: Row) => trialLink(row, all, compareAddress(n, row.n), row.n === shown);
  const first = others.find((row) => row.n === shown) || others[0]!;
  const rest = others.filter((row) => row !== first);
  return (
    <nav class="trials compare" aria-label="Compare with another trial">
      <span class="label">compare with</span>
      {others.length <= FEW ? (
        others.map(link)
      ) : (
        <>
          {link(first)}
          <MoreTrials summary={`or one of ${count(rest.length)} others`} links={rest.map(link)} />
        </>
      )}
    </nav>
  );
}

/* Words that were searched for in conversations: marked, and walked through. The marks are the browser's own
   highlights over the text as it stands: nothing is written into it. */
type TextNode = globalThis.Text;
const SAID = ".speech, .changes";
const BESIDE = "button, .who, .aside, .label, .tag, .kind, .tool-main, .visually-hidden";
const BLOCK = ".text, summary, li, p, figcaption";
const MOST_HITS = 5000; // each costs whenever the page changes

export const searched = () =>
  page.filter.deep
    ? [...new Set((page.filter.q || "").toLowerCase().split(/\s+/))]
        .filter((word) => word && !(word.length > 1 && word[0] === "-"))
        .sort((a, b) => b.length - a.length)
    : [];

/* All places of the words in what was said; a word may go on from one text node to the next. */
function findHits(root: Element, words: string[]): Range[] {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  const pattern = new RegExp(escaped.join("|"), "giu");
  const blocks = new Map<Element, TextNode[]>();
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const around = node.parentElement!;
    if (!around.closest(SAID) || around.closest(BESIDE)) continue;
    const block = around.closest(BLOCK) || around;
    if (!blocks.has(block)) blocks.set(block, []);
    blocks.get(block)!.push(node as TextNode);
  }
  const found: Range[] = [];
  for (const nodes of blocks.values()) {
    const starts: number[] = [];
    let text = "";
    for (const node of nodes) {
      starts.push(text.length);
      text += node.data;
    }
    const place = (at: number, last: boolean): [TextNode, number] => {
      const i = starts.findLastIndex((start) => (last ? start < at : start <= at));
      return [nodes[i]!, at - starts[i]!];
    };
    for (const match of text.matchAll(pattern)) {
      if (found.length >= MOST_HITS) return found;
      const range = document.createRange();
      range.setStart(...place(match.index, false));
      range.setEnd(...place(match.index + match[0].length, true));
      found.push(range);
    }
  }
  return found;
}

function paint(all: Range[], now?: Range): void {
  if (!("highlights" in CSS)) return; // such a browser still leads from one to the next
  CSS.highlights.set("sk-hit", new Highlight(...all));
  CSS.highlights.set("sk-hit-now", new Highlight(...(now ? [now] : [])));
}

export const nextHit: { go: (by: number) => void } = { go: () => {} }; // of the conversation that is shown

function Hits() {
  const words = searched();
  const [{ at, number }, set] = useState({ at: -1, number: 0 });
  const found = useRef<Range[]>([]);
  const bar = useRef<HTMLDivElement>(null);
  const now = useRef(-1);
  useLayoutEffect(() => {
    paint([]);
    const root = bar.current?.parentElement?.querySelector(".conversation");
    if (!root || !words.length) return;
    const look = () => {
      // What is folded is made, so that there are words to be found in it; it stays folded.
      for (const part of root.querySelectorAll(SAID))
        for (const one of [part, ...part.querySelectorAll("details")]) (one as Foldable).fold?.(null);
      found.current = findHits(root, words);
      paint(found.current, found.current[now.current]);
      set({ at: now.current, number: found.current.length });
    };
    nextHit.go = (by) => {
      const all = found.current;
      if (!all.length) return announce("None of the words is in this conversation");
      now.current = now.current < 0 && by < 0 ? all.length - 1 : (now.current + by + all.length) % all.length;
      const hit = all[now.current]!;
      const node = hit.startContainer.parentElement!;
      unfoldAround(node);
      node.closest<HTMLElement>(".turn")?.focus({ preventScroll: true });
      const { top } = hit.getBoundingClientRect();
      scrollTo({ top: scrollY + top - innerHeight / 3, behavior: behaviour() });
      paint(all, hit);
      set({ at: now.current, number: all.length });
      announce(`hit ${now.current + 1} of ${all.length}`);
    };
    queueMicrotask(() => {
      look(); // once the folds are there
      if (!page.route.turn && found.current.length) nextHit.go(1);
    });
    // A message that is drawn anew, as it was written, has its words elsewhere.
    const gone = (one: Range) => one.collapsed || !root.contains(one.startContainer);
    const watch = new MutationObserver(() => found.current.some(gone) && look());
    watch.observe(root, { childList: true, subtree: true });
    return () => {
      watch.disconnect();
      nextHit.go = () => {};
      paint([]);
    };
  }, []);
  if (!words.length) return null;
  const text = at < 0 ? `${plural(number, "hit")} of ` : `hit ${count(at + 1)} of ${count(number)}: `;
  const button = (label: string, by: number, key: string) => (
    <Button class="quiet" aria-keyshortcuts={key} title={`Key ${key}`} onClick={() => nextHit.go(by)}>
      {label}
    </Button>
  );
  return (
    <div ref={bar} class="hits" role="group" aria-label="Words that were searched for">
      <span class="hits-told">
        {text}
        {words.map((word, i) => [i ? ", " : null, <q>{word}</q>])}
      </span>
      {number ? button("↑ previous hit", -1, "H") : null}
      {number ? button("↓ next hit", 1, "h") : null}
    </div>
  );
}
