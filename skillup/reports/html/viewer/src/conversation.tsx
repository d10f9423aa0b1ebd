/* A conversation as it happened, from the system prompt to the last check. */
import type { ComponentChildren } from "preact";
import type { Link, Trial, TrialError, Turn } from "./data";
import { Checks } from "./checks";
import { turnMark } from "./data";
import { WorkspaceChanges } from "./text/diff";
import { Aside, Button, Fold, SignAndWord, Status, showMark } from "./dom";
import { cost, duration, known, plural, score, usageText } from "./text/format";
import { trialAddress } from "./state";
import { Answer, Text, type Range } from "./text/text";
import { ItemView } from "./tools";

export const Turns = ({ detail }: { detail: Trial }) => (
  <div class="conversation">
    <Opening detail={detail} />
    {detail.turns.map((turn) => (
      <TurnView key={turn.turn_number} turn={turn} detail={detail} />
    ))}
    <Ending detail={detail} />
  </div>
);

/* A message: who says it, and what. */
export const Speech = (props: {
  name: string;
  who: string;
  aside?: string | null;
  children: ComponentChildren;
}) => (
  <div class={`speech ${props.name}`}>
    <div class="who">
      {props.who}
      {props.aside ? <Aside> {props.aside}</Aside> : null}
    </div>
    {props.children}
  </div>
);

const ROLES: Record<string, string> = { user: "User", assistant: "Agent", tool: "Tool" };

/* What was there before the first turn: the system prompt and the placed history. */
export const Opening = ({ detail }: { detail: Trial }) => (
  <>
    {detail.system ? (
      <Speech name="system" who="System prompt" aside="added by the case">
        <Text text={detail.system} />
      </Speech>
    ) : null}
    {detail.history?.length ? (
      <section class="history" aria-label="History">
        <h3 class="minor">
          History <Aside>{plural(detail.history.length, "message")}, placed, not run</Aside>
        </h3>
        {detail.history.map((one) => (
          <Speech
            name={`${one.role === "user" ? "user" : "agent"} placed`}
            who={ROLES[one.role] || one.role}
            aside="placed"
          >
            {one.role === "user" ? <Text text={one.content} /> : <Answer text={one.content} />}
            {(one.items || []).map((item) => (
              <ItemView item={item} ranges={[]} />
            ))}
          </Speech>
        ))}
      </section>
    ) : null}
  </>
);

const STOPS: Record<string, string> = {
  completed: "reached its aim",
  impossible: "found its aim impossible",
  limit: "stopped at the limit of turns",
};

export function Ending({ detail }: { detail: Trial }) {
  const end = detail.simulated_end;
  return (
    <>
      {end ? (
        <p class="simulated-end">
          <span class="label">simulated user</span> {STOPS[end.stop] || end.stop}
          {end.reason ? (
            <>
              : <q>{end.reason}</q>
            </>
          ) : null}
        </p>
      ) : null}
      {detail.conversation_checks?.length ? (
        <section class="conversation-checks" tabIndex={-1}>
          <Checks checks={detail.conversation_checks} title="Checks of the whole conversation" />
        </section>
      ) : null}
    </>
  );
}

/* `differing`: of two conversations, the words that this answer alone has. */
type TurnProps = { turn: Turn; detail: Trial; differing?: Range[] };

export function TurnView({ turn, detail, differing }: TurnProps) {
  const mark = turnMark(turn);
  const number = turn.turn_number;
  const head = `Turn ${number}`;
  // An earlier attempt is no place of the trial: keys and links mean the one that counts.
  const counted = !turn.given_up;
  const attributes = counted ? { "data-turn": number } : {};
  return (
    <article
      class={`turn turn-${mark.status}${counted ? "" : " of-attempt"}`}
      aria-label={head}
      tabIndex={-1}
      {...attributes}
    >
      <header class="turn-head">
        <h3>{counted ? <Jump n={detail.n} part={number} text={head} /> : head}</h3>{" "}
        <SignAndWord {...mark} />
        {turn.passed_on ? <span class="tag">passed on its {turn.passed_on}</span> : null}
        {turn.counted_by ? <span class="tag">shared, run before the fork</span> : null}
        <span class="turn-facts">{facts(turn)}</span>
      </header>
      <div class="turn-body">
        <div class="said">
          <Said turn={turn} detail={detail} differing={differing} />
          {(turn.follow_ups || []).map((one) => (
            <FollowUp turn={one} detail={detail} />
          ))}
        </div>
        <aside class="judged" aria-label={`Checks and captures of turn ${number}`}>
          <Judged turn={turn} detail={detail} />
        </aside>
      </div>
    </article>
  );
}

/* A link to a part of the conversation that is shown. */
type JumpProps = { n: number; part: number | string; text: string; name?: string };
export const Jump = ({ n, part, text, name = "" }: JumpProps) => (
  <a href={trialAddress(n, part)} class={`jump ${name}`} data-turn={part}>
    {text}
  </a>
);

const facts = (turn: Turn) =>
  [
    known(turn.score) && turn.status === "completed" ? "score " + score(turn.score) : null,
    turn.duration_ms ? duration(turn.duration_ms) : null,
    usageText(turn.usage),
    known(turn.cost_usd) ? cost(turn.cost_usd) : null,
    turn.model,
  ]
    .filter(Boolean)
    .join(" · ");

const WHO: Record<string, [string, string | null]> = {
  case: ["User", null],
  simulator: ["Simulated user", "written by the simulated user"],
  follow_up: ["Follow-up", "sent because a check failed"],
  history: ["User", "placed, not run"],
};

function Said({ turn, detail, differing }: TurnProps) {
  const [who, aside] = WHO[turn.source] || [turn.source, null];
  const label = turn.label ? turn.label[0]!.toUpperCase() + turn.label.slice(1) : who;
  const changed = (turn.places || []).filter((one) => one.in === "changes");
  return (
    <>
      <Speech
        name={`user ${turn.source}`}
        who={label}
        aside={turn.status === "skipped" ? "not sent" : aside}
      >
        <Message turn={turn} detail={detail} />
      </Speech>
      {turn.status === "skipped" ? (
        <p class="notice">Skipped{turn.reason ? `: ${turn.reason}` : ""}</p>
      ) : null}
      <Agent turn={turn} detail={detail} differing={differing} />
      {turn.changes ? <WorkspaceChanges changes={turn.changes} ranges={changed} /> : null}
      <ErrorBox error={turn.error} title="The turn could not run" raw={turn.raw} />
      {turn.status === "failed" && turn.reason ? <p class="notice">{turn.reason}</p> : null}
    </>
  );
}

/* The key of a captured value: the same in the answer, on the chip and where it is filled in. */
const captureKey = (turn: number, variable: string) =>
  `capture-${turn}-${variable.replace(/\s/g, "_")}`;

/* A message with its filled-in parts marked. */
function Message({ turn, detail }: { turn: Turn; detail: Trial }) {
  const parts = turn.content_parts || [];
  if (!parts.some((part) => part.variable)) return <Text text={turn.content} />;
  const ranges: Range[] = [];
  let text = "";
  for (const part of parts) {
    if (part.variable) {
      // The value came from the last turn before that took it.
      const before = detail.turns.filter((one) => one.turn_number < turn.turn_number);
      const source = before.findLast((one) =>
        one.captures?.some((taken) => taken.variable === part.variable),
      );
      ranges.push({
        start: text.length,
        end: text.length + part.text.length,
        class: "filled",
        marks: [captureKey(source?.turn_number || 0, part.variable)],
        title: `<<${part.variable}>>`,
      });
    }
    text += part.text;
  }
  return <Text text={text} ranges={ranges} />;
}

function Agent({ turn, detail, differing }: TurnProps) {
  const places = turn.places || [];
  const mine = known(turn.follow_up) ? turn.follow_up : null;
  const holder = detail.turns.find((one) => one.turn_number === turn.turn_number) || turn;
  const captures = (holder.captures || [])
    .filter((capture) => capture.where && (capture.where.follow_up ?? null) === mine)
    .map((capture) => ({
      start: capture.where!.start,
      end: capture.where!.end,
      class: "captured",
      marks: [captureKey(turn.turn_number, capture.variable)],
      title: `captured as <<${capture.variable}>>`,
    }));
  const ofAnswer: Range[] = [...places.filter((one) => one.in === "response"), ...captures];
  if (mine === null && differing) ofAnswer.push(...differing);
  const ofItem = (at: number) => places.filter((one) => one.in === "item" && one.item === at);
  const items = turn.items || [];
  const last = items.findLastIndex(
    (item) => item.type === "message" && !item.agent && item.text === turn.response,
  );
  const answer = (ranges: Range[]) => (
    <Answer text={turn.response} ranges={ranges} name="prose answer" />
  );
  const parts = items.map((item, at) =>
    at === last ? (
      answer([...ofAnswer, ...ofItem(at)])
    ) : (
      <ItemView item={item} ranges={ofItem(at)} />
    ),
  );
  if (last < 0 && turn.response) parts.push(answer(ofAnswer));
  if (!parts.length) {
    if (turn.status === "skipped") return null;
    parts.push(<p class="aside">{turn.error ? "No answer." : "The agent said nothing."}</p>);
  }
  return (
    <Speech name="agent" who="Agent">
      {parts}
    </Speech>
  );
}

const Judged = ({ turn, detail }: { turn: Turn; detail: Trial }) => (
  <>
    <Checks checks={turn.checks || []} title="Checks" />
    <Captures turn={turn} detail={detail} />
    {(turn.notes || []).map((note) => (
      <p class="note">{note}</p>
    ))}
    <footer class="turn-foot">
      {turn.session_verified === false ? <strong>session not verified</strong> : null}
      <RawLinks raw={turn.raw} />
    </footer>
  </>
);

/* What was taken out of a turn: chips that show where it was found and where it is used. */
function Captures({ turn, detail }: { turn: Turn; detail: Trial }) {
  if (!turn.captures?.length) return null;
  return (
    <ul class="captures" aria-label="Captured">
      {turn.captures.map(({ variable, value, where, used_in }) => {
        const key = captureKey(turn.turn_number, variable);
        return (
          <li>
            <Button
              class="capture"
              data-marks={key}
              title={where ? "Show where it was found" : undefined}
              onClick={(event) => showMark(event.currentTarget, key)}
            >
              <code>{`<<${variable}>>`}</code> ={" "}
              <span class="capture-value">
                {value.length > 120 ? `${value.slice(0, 120)}…` : value}
              </span>
            </Button>
            <Aside>{used_in.length ? " used in" : " not used in a later message"}</Aside>
            {used_in.map((number) => [
              " ",
              <Jump n={detail.n} part={number} text={`turn ${number}`} />,
            ])}
          </li>
        );
      })}
    </ul>
  );
}

/* By its own checks: one of its own follow-ups may have passed in its stead. */
function FollowUp({ turn, detail }: { turn: Turn; detail: Trial }) {
  const own = turn.passed && (turn.checks || []).every((check) => check.passed);
  const status = own ? "PASS" : turn.status === "error" ? "ERROR" : "FAIL";
  return (
    <section class="follow-up" aria-label={turn.label || "follow-up"}>
      <div class="turn-facts">
        <Status status={status} /> {facts(turn)}
      </div>
      <Said turn={turn} detail={detail} />
      <Judged turn={turn} detail={detail} />
    </section>
  );
}

/* What could not run, and what to do about it; `raw`: links to what the agent printed. */
export function ErrorBox(props: { error: TrialError | null; title: string; raw?: Link[] }) {
  const { error, title, raw } = props;
  if (!error) return null;
  const advice = (error.advice || "").split("`"); // our own words
  return (
    <section class="error-box" aria-label={title}>
      <h4>
        <span class="sign status-ERROR" aria-hidden="true">
          {"! "}
        </span>
        {title}: <code>{error.kind}</code>
      </h4>
      <p>{error.message}</p>
      {error.advice ? (
        <p class="advice">
          <strong>What to do: </strong>
          {advice.map((part, at) => (at % 2 ? <code>{part}</code> : part))}
        </p>
      ) : null}
      {raw?.length ? (
        <p class="error-raw">
          <strong>All that it printed: </strong>
          <RawLinks raw={raw} />
        </p>
      ) : null}
      {error.evidence ? (
        <Fold
          summary="Evidence"
          inside={() => <Text text={error.evidence} name="code" />}
          start={error.evidence.length < 2000}
        />
      ) : null}
    </section>
  );
}

export function RawLinks({ raw }: { raw: Link[] | null | undefined }) {
  if (!raw?.length) return null;
  return <span class="raw">{raw.map((one) => [" ", <a href={one.href}>{one.name}</a>])}</span>;
}
