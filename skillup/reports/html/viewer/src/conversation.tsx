/* A conversation as it happened, from the system prompt to the last check. */
import type { ComponentChildren, TargetedEvent } from "preact";
import type { Check, Item, Link, Trial, TrialError, Turn } from "../dist/types";
import { checksText, turnMark, type Evident } from "./data";
import { Diff, WorkspaceChanges, diffKinds, editLines } from "./text/diff";
import { Aside, Button, Fold, Hidden, Status, announce, dim, showMark } from "./dom";
import { cost, duration, known, percent, plural, score, usageText } from "./text/format";
import { trialAddress } from "./state";
import { Answer, Text, holding, opensFor, type Range } from "./text/text";

const MANY = 1000; // calls and messages, beyond which those out of sight are not laid out

/* Of two conversations: the words that differ, and the first call that does. */
export interface Differing {
  words: Range[];
  call: number;
}

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
          History <Aside>{plural(detail.history.length, "message")}, placed in the session, not run</Aside>
        </h3>
        {detail.history.map((one) => (
          <Speech
            name={`${one.role === "user" ? "user" : "agent"} placed`}
            who={ROLES[one.role] || one.role}
            aside="placed"
          >
            {one.content ? one.role === "user" ? <Text text={one.content} /> : <Answer text={one.content} /> : null}
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

type TurnProps = { turn: Turn; detail: Trial; differing?: Differing };

export function TurnView({ turn, detail, differing }: TurnProps) {
  const mark = turnMark(turn);
  const number = turn.turn_number;
  const head = `Turn ${number}`;
  // An earlier attempt is no place of the trial: keys and links to turns mean those of the one that counts.
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
        <span class={`status status-${mark.status}`}>
          <span class="sign" aria-hidden="true">
            {mark.sign}
          </span>{" "}
          {mark.word}
        </span>
        {turn.passed_on ? <span class="tag">passed on its {turn.passed_on}</span> : null}
        {turn.held_by ? (
          <span class="tag" title={turn.held_by}>
            shared, held before the fork
          </span>
        ) : null}
        <span class="turn-facts">{facts(turn)}</span>
      </header>
      <div class="turn-body">
        <div class="said">
          <Said turn={turn} detail={detail} differing={differing} />
          {(turn.follow_ups || []).map((one) => (
            <FollowUp turn={one} detail={detail} all={turn.follow_ups} />
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
export const Jump = ({ n, part, text }: { n: number; part: number | string; text: string }) => (
  <a href={trialAddress(n, part)} class="jump" data-turn={part}>
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
      <Speech name={`user ${turn.source}`} who={label} aside={turn.status === "skipped" ? "not sent" : aside}>
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
      const took = (one: Turn) =>
        one.turn_number < turn.turn_number && one.captures?.some((c) => c.variable === part.variable);
      const source = detail.turns.filter(took).at(-1);
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
  if (mine === null && differing) ofAnswer.push(...differing.words);
  const ofItem = (at: number) => places.filter((one) => one.in === "item" && one.item === at);
  const items = turn.items || [];
  const last = items.findLastIndex(
    (item) => item.type === "message" && !item.agent && item.text === turn.response,
  );
  const answer = (ranges: Range[]) => <Answer text={turn.response} ranges={ranges} name="prose answer" />;
  let calls = 0;
  const parts = items.map((item, at) => {
    if (at === last) return answer([...ofAnswer, ...ofItem(at)]);
    const differs = item.type === "tool" && differing?.call === calls++;
    return <ItemView item={item} ranges={ofItem(at)} differs={differs} />;
  });
  if (last < 0 && turn.response) parts.push(answer(ofAnswer));
  if (!parts.length) {
    if (turn.status === "skipped") return null;
    parts.push(<p class="aside">{turn.error ? "No answer." : "The agent said nothing."}</p>);
  }
  return (
    <Speech name={parts.length > MANY ? "agent many" : "agent"} who="Agent">
      {parts}
    </Speech>
  );
}

/* Something that was said or done within a turn. */
function ItemView({ item, ranges, differs = false }: { item: Item; ranges: Evident[]; differs?: boolean }) {
  if (item.type === "tool") return <Tool item={item} ranges={ranges} differs={differs} />;
  const text = item.text || "";
  if (item.type === "notice") return <p class="notice small-notice">{text}</p>;
  if (item.type === "reasoning") {
    const summary = (
      <>
        <span class="label">reasoning</span> <Aside>{text.slice(0, 160).replace(/\s+/g, " ")}</Aside>
      </>
    );
    const inside = () => <Text text={text} ranges={ranges} />;
    return (
      <Fold
        class="reasoning"
        {...holding(ranges)}
        summary={summary}
        inside={inside}
        start={opensFor(ranges)}
      />
    );
  }
  const block = <Answer text={text} ranges={ranges} />;
  if (!item.agent) return block;
  return (
    <div class="sub-agent">
      <span class="tag">sub-agent {item.agent}</span>
      {block}
    </div>
  );
}

const KIND_SIGN: Record<string, string> = {
  ...{ shell: "$", read: "▤", write: "✎", edit: "±", search: "⌕", web: "⌂", mcp: "⧉", skill: "★" },
  ...{ agent: "☺", other: "·" },
};
/* The argument that says most, by what tools call it. */
const MAIN = "command cmd file_path path notebook_path pattern query url skill name description prompt";
/* Where trials have their workspace: of a path in there, what follows is enough. */
const WORKSPACE = /^\/(?:[^/]+\/)*skillup-[A-Za-z0-9_]+\/[^/]+\/workspace\/(?=.)/;
const RESULT: Record<string, [string, string, string]> = {
  success: ["✓", "succeeded", "PASS"],
  error: ["✗", "failed", "FAIL"],
  unknown: ["·", "ended", "SKIP"],
};

/* A call in short: {main, title: all of it, where it was made shorter}. */
export function callText(item: Item): { main: string; title?: string } {
  const given = item.arguments || {};
  const values = MAIN.split(" ").map((key) => given[key]);
  const texts = values.map((value) =>
    Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join(" ") : value,
  );
  const found = texts.find((text): text is string => typeof text === "string" && text !== "");
  const whole = found ?? (Object.keys(given).length ? JSON.stringify(given) : "");
  const text = whole.replace(/\s+/g, " ").trim();
  const main = text.replace(WORKSPACE, "").slice(0, 300);
  return WORKSPACE.test(text) ? { main, title: text.slice(0, 300) } : { main };
}

/* A tool call: one line that says what it did, which opens to its arguments and its result. `ranges`: places
   in its result or its arguments to be marked; one without extent means all of it. */
function Tool({ item, ranges, differs }: { item: Item; ranges: Evident[]; differs: boolean }) {
  const whole = ranges.filter((one) => one.start === one.end).flatMap((one) => one.marks || []);
  const kind = item.kind || "other";
  const [sign, word, status] = item.result
    ? RESULT[item.result.status] || RESULT.unknown!
    : ["…", "no result", "SKIP"];
  const { main, title } = callText(item);
  const summary = (
    <>
      <span class="kind" title={kind} aria-hidden="true">
        {KIND_SIGN[kind] || "·"}
      </span>
      <span class="tool-name">{item.name || kind}</span>
      <code class="tool-main" title={title}>
        {main}
      </code>
      {item.agent ? <span class="tag">sub-agent {item.agent}</span> : null}
      {item.duration_ms ? <Aside>{duration(item.duration_ms)}</Aside> : null}
      <Verdict sign={sign} word={` ${word}`} status={status} />
      {differs ? <span class="tag">differs</span> : null}
    </>
  );
  return (
    <Fold
      class={differs ? "tool differs-here" : "tool"}
      data-marks={whole.join(" ") || undefined}
      {...holding(ranges)}
      summary={summary}
      inside={() => <ToolInside item={item} ranges={ranges} />}
      start={opensFor(ranges)}
    />
  );
}

const Verdict = ({ sign, word, status }: { sign: string; word: string; status: string }) => (
  <span class={`sign status-${status}`} title={word.trim()}>
    <span aria-hidden="true">{sign}</span>
    <Hidden text={word} />
  </span>
);

const Labelled = ({ label, children }: { label: string; children: ComponentChildren }) => (
  <div class="argument">
    <span class="label">{label}</span>
    {children}
  </div>
);

interface Edit {
  old_string: string;
  new_string: string;
}

const isEdit = (one: unknown): one is Edit =>
  typeof (one as Edit | null)?.old_string === "string" && typeof (one as Edit).new_string === "string";

const looksLikeDiff = (text: string) =>
  /^(diff --git |--- [^\n]*\n\+\+\+ |\*\*\* Begin Patch)/m.test(text.slice(0, 2000)) &&
  /^[+-]/m.test(text);

function ToolInside({ item, ranges }: { item: Item; ranges: Evident[] }) {
  const given = { ...item.arguments };
  const edits: Edit[] = [];
  if (!ranges.some((one) => one.part === "arguments")) {
    if (isEdit(given)) {
      edits.push({ ...(given as unknown as Edit) });
      delete (given as Record<string, unknown>).old_string;
      delete (given as Record<string, unknown>).new_string;
    } else if (Array.isArray(given.edits) && given.edits.every(isEdit)) {
      edits.push(...(given.edits as Edit[]));
      delete given.edits;
    }
  }
  const { result } = item;
  const content = result?.content || "";
  const found = ranges.filter((one) => one.part === "result");
  const of = (name: string) =>
    ranges.filter((one) => one.part === "arguments" && one.argument === name);
  return (
    <div class="tool-inside">
      {Object.entries(given).map(([name, value]) => (
        <Labelled label={name}>
          <Text
            text={typeof value === "string" ? value : JSON.stringify(value, null, 2)}
            ranges={of(name)}
            name="code"
          />
        </Labelled>
      ))}
      {edits.map((edit) => (
        <Labelled label="edit">
          <Diff lines={editLines(edit.old_string, edit.new_string)} />
        </Labelled>
      ))}
      {result ? (
        <Labelled label={result.status === "error" ? "result (error)" : "result"}>
          {content === "" ? (
            <Aside>empty</Aside>
          ) : looksLikeDiff(content) && !found.length ? (
            <Diff lines={diffKinds(content)} />
          ) : (
            <Text text={content} ranges={found} name="code" />
          )}
        </Labelled>
      ) : (
        <p class="aside">No result was reported.</p>
      )}
      {item.id ? (
        <p class="aside">
          call <code>{item.id}</code>
        </p>
      ) : null}
    </div>
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
      <Session turn={turn} detail={detail} />
      <RawLinks raw={turn.raw} />
    </footer>
  </>
);

/* The session's id is said once, at the head; here only where a turn was held in another. */
function Session({ turn, detail }: { turn: Turn; detail: Trial }) {
  const other = turn.session_id && turn.session_id !== detail.session_id;
  if (!other && turn.session_verified)
    return <span title="The session still held the earlier turns">session verified</span>;
  if (!other && turn.session_verified !== false) return null;
  return (
    <span>
      session {other ? <Copyable text={turn.session_id!} what="session id" /> : null}
      {turn.session_verified === false ? <strong> not verified</strong> : null}
      {turn.session_verified ? " verified" : null}
    </span>
  );
}

/* What was taken out of a turn: chips that show where it was found and where it is used. */
function Captures({ turn, detail }: { turn: Turn; detail: Trial }) {
  if (!turn.captures?.length) return null;
  return (
    <ul class="captures" aria-label="Captured">
      {turn.captures.map(({ variable, value, where, used_in }) => {
        const key = captureKey(turn.turn_number, variable);
        const light = (event: TargetedEvent<HTMLElement>) => showMark(event.currentTarget, key, event.type === "click");
        const on = { onMouseEnter: light, onMouseLeave: dim, onFocus: light, onBlur: dim };
        return (
          <li>
            <button
              type="button"
              class="capture"
              data-marks={key}
              title={where ? "Show where it was found" : undefined}
              onClick={light}
              {...on}
            >
              <code>{`<<${variable}>>`}</code> ={" "}
              <span class="capture-value">{value.length > 120 ? `${value.slice(0, 120)}…` : value}</span>
            </button>
            {used_in?.length ? (
              <>
                <Aside> used in </Aside>
                {used_in.map((number, at) => [
                  at ? ", " : null,
                  <Jump n={detail.n} part={number} text={`turn ${number}`} />,
                ])}
              </>
            ) : (
              <Aside> not used in a later message</Aside>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/* By its own checks: one of its own follow-ups may have passed in its stead, which is said beside it. */
function FollowUp({ turn, detail, all }: { turn: Turn; detail: Trial; all: Turn[] }) {
  const own = turn.passed && (turn.checks || []).every((check) => check.passed);
  const status = own ? "PASS" : turn.status === "error" ? "ERROR" : "FAIL";
  const isBelow = (one: Turn) =>
    one.asked_by.length > turn.asked_by.length &&
    turn.asked_by.every((place, at) => one.asked_by[at] === place);
  const saved = turn.passed && !own ? all.find((one) => one.passed && isBelow(one)) : null;
  return (
    <section class="follow-up" aria-label={turn.label || "follow-up"}>
      <div class="turn-facts">
        <Status status={status} />
        {" "}
        {saved ? <span class="tag">then passed on the {saved.label}</span> : null} {facts(turn)}
      </div>
      <Said turn={turn} detail={detail} />
      <Judged turn={turn} detail={detail} />
    </section>
  );
}

/* Checks: passed or not, what was expected and found, and where it stands in the text. */
function Checks({ checks, title }: { checks: Check[]; title: string }) {
  if (!checks.length) return null;
  return (
    <section class="checks" aria-label={title}>
      <h4>
        {title} <Aside>{checksText(checks)}</Aside>
      </h4>
      <ul>
        {checks.map((check) => (
          <li>
            <CheckView check={check} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function checkMark(check: Check): [string, string, string] {
  if (check.error) return ["!", "error", "ERROR"];
  if (check.gate) return ["–", `not evaluated: the gate of turn ${check.gate} failed`, "SKIP"];
  if (check.moot) return [check.moot === "skips the rest" ? "○" : "–", check.moot, "SKIP"];
  if (check.assertable === false) return ["✗", "failed: nothing to look at", "FAIL"];
  return check.passed ? ["✓", "passed", "PASS"] : ["✗", "failed", "FAIL"];
}

const ROLE: Record<string, string> = {
  ...{ post_condition: "gate", expect: "expect", success: "success rule", failure: "failure rule" },
  judge: "judge",
};

function CheckView({ check }: { check: Check }) {
  const [sign, word, status] = checkMark(check);
  const votes = check.votes?.length || 0;
  const agreed = known(check.agreement) ? `, ${percent(check.agreement)} agree` : "";
  const badges = [
    ROLE[check.role],
    check.required ? "required" : null,
    known(check.weight) && check.weight !== 1 ? "weight " + score(check.weight) : null,
    known(check.score) && check.score > 0 && check.score < 1 ? "score " + score(check.score) : null,
    votes > 1 ? `${votes} votes${agreed}` : null,
  ].filter(Boolean);
  const line = (
    <>
      <Verdict sign={sign} word={`${word}: `} status={status} />
      <span class="check-name">{check.name || check.kind}</span>
      {badges.map((badge) => (
        <span class="tag">{badge}</span>
      ))}
      {check.gate ? <span class="why-not">{word}</span> : null}
    </>
  );
  const name = `check check-${status}`;
  const texts = [check.expected, check.found, check.excerpt, check.error, check.key, ...(check.notes || [])];
  if (!texts.some(Boolean) && !votes && !check.children?.length) return <div class={name}>{line}</div>;
  return (
    <Fold
      class={name}
      data-marks={check.key || undefined}
      summary={line}
      inside={() => <CheckInside check={check} />}
      start={(!check.passed && check.moot !== "not evaluated") || Boolean(check.error)}
      onOpen={(node) => check.key && showMark(node, check.key)}
    />
  );
}

function CheckInside({ check }: { check: Check }) {
  const inChanges = check.evidence?.in === "changes";
  const line = (label: string, text: string | null | undefined, name = "plain-text") =>
    text ? (
      <>
        <dt>{label}</dt>
        <dd>
          <Text text={text} name={name} />
        </dd>
      </>
    ) : null;
  const scope = check.scope ? `, of ${check.scope}` : "";
  return (
    <div class="check-inside">
      <dl>
        {line("could not be evaluated", check.error)}
        {line("expected", check.expected)}
        {/* After a failed gate it is the gate's, which says it itself. */}
        {check.gate ? null : line("found", (check.found || "").replace(/^found /, ""))}
        {/* An excerpt is one line, in which ⏎ stands for line ends. */}
        {inChanges || !check.key ? line("excerpt", check.excerpt?.replace(/⏎/g, "\n"), "code excerpt") : null}
        {(check.notes || []).map((note) => line("note", note))}
        {(check.votes?.length || 0) > 1 ? line("votes", check.votes!.map(score).join(", ")) : null}
        {check.kind && check.kind !== check.name ? line("check", check.kind + scope) : null}
      </dl>
      {check.key ? (
        <button
          type="button"
          class="show-evidence"
          onClick={(event) => showMark(event.currentTarget, check.key!)}
        >
          {inChanges ? "Show what changed" : "Show in the text"}
        </button>
      ) : null}
      {check.children?.length ? (
        <ul>
          {check.children.map((child) => (
            <li>
              <CheckView check={child} />
            </li>
          ))}
        </ul>
      ) : null}
    </div>
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
  const links = () => (
    <span class="raw">
      {raw.map((one, at) => [at ? " " : null, <a href={one.href}>{one.name}</a>])}
    </span>
  );
  return raw.length > 6 ? <Fold class="raw-fold" summary={`Files (${raw.length})`} inside={links} /> : links();
}

/* A short text with a button that copies it. */
export function Copyable({ text, what }: { text: string; what: string }) {
  const copy = () => {
    // Pages that were opened from a file may not use the clipboard's own interface.
    const area = document.createElement("textarea");
    area.className = "visually-hidden";
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    announce(`${what} copied`);
  };
  return (
    <span class="copyable">
      <code>{text}</code>{" "}
      <Button class="copy" aria-label={`Copy the ${what}`} onClick={copy}>
        copy
      </Button>
    </span>
  );
}
