/* What an agent did within a turn: its calls, a line each, and what it said or thought between
   them. */
import type { ComponentChildren } from "preact";
import type { Evident, Item } from "./data";
import { Diff, editLines } from "./text/diff";
import { Aside, Fold, Verdict } from "./dom";
import { Answer, Text, folded, keysOf } from "./text/text";

/* Something that was said or done within a turn. */
export function ItemView({ item, ranges }: { item: Item; ranges: Evident[] }) {
  if (item.type === "tool") return <Tool item={item} ranges={ranges} />;
  const text = item.text || "";
  if (item.type === "notice") return <p class="notice small-notice">{text}</p>;
  if (item.type === "question")
    return (
      <p class="notice small-notice question">
        <span class="label">asks</span> {text} <strong>{item.outcome}</strong>
      </p>
    );
  if (item.type === "reasoning") {
    const summary = (
      <>
        <span class="label">reasoning</span>{" "}
        <Aside>{text.slice(0, 160).replace(/\s+/g, " ")}</Aside>
      </>
    );
    const inside = () => <Text text={text} ranges={ranges} />;
    return <Fold class="reasoning" {...folded(ranges)} summary={summary} inside={inside} />;
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

/* The argument that says most, by what tools call it. */
const MAIN =
  "command cmd file_path path notebook_path pattern query url skill name description prompt";
const RESULT: Record<string, [string, string, string]> = {
  success: ["✓", "succeeded", "PASS"],
  error: ["✗", "failed", "FAIL"],
  unknown: ["·", "ended", "SKIP"],
};

/* A call in short. */
function callText({ arguments: given = {} }: Item): string {
  const values = MAIN.split(" ").map((key) => given[key]);
  const texts = values.map((value) =>
    Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join(" ") : value,
  );
  const found = texts.find((text): text is string => typeof text === "string" && text !== "");
  const whole = found ?? (Object.keys(given).length ? JSON.stringify(given) : "");
  return whole.replace(/\s+/g, " ").trim().slice(0, 300);
}

/* A tool call: one line that says what it did, which opens to its arguments and its result.
   `ranges`: places in its result or its arguments to be marked; one without extent means all of
   it. */
function Tool({ item, ranges }: { item: Item; ranges: Evident[] }) {
  const whole = ranges.filter((one) => one.start === one.end);
  const kind = item.kind || "other";
  const [sign, word, status] = item.result
    ? RESULT[item.result.status] || RESULT.unknown!
    : ["…", "no result", "SKIP"];
  const summary = (
    <>
      <span class="tool-name">{item.name || kind}</span>
      <code class="tool-main">{callText(item)}</code>
      {item.agent ? <span class="tag">sub-agent {item.agent}</span> : null}
      <Verdict sign={sign} word={` ${word}`} status={status} />
    </>
  );
  return (
    <Fold
      class="tool"
      data-marks={keysOf(whole)}
      {...folded(ranges)}
      summary={summary}
      inside={() => <ToolInside item={item} ranges={ranges} />}
    />
  );
}

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

const isText = (value: unknown) => typeof value === "string";
const isEdit = (one: unknown): one is Edit =>
  isText((one as Edit | null)?.old_string) && isText((one as Edit).new_string);

function ToolInside({ item, ranges }: { item: Item; ranges: Evident[] }) {
  const { edits: several, old_string, new_string, ...rest } = item.arguments || {};
  const edits = (Array.isArray(several) ? several : [{ old_string, new_string }]) as unknown[];
  const drawn = edits.every(isEdit) && !ranges.some((one) => one.part === "arguments");
  const given = drawn ? rest : item.arguments || {};
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
      {(drawn ? edits : []).map((edit) => (
        <Labelled label="edit">
          <Diff lines={editLines(edit.old_string, edit.new_string)} />
        </Labelled>
      ))}
      {result ? (
        <Labelled label={result.status === "error" ? "result (error)" : "result"}>
          {content === "" ? (
            <Aside>empty</Aside>
          ) : (
            <Text text={content} ranges={found} name="code" />
          )}
        </Labelled>
      ) : (
        <p class="aside">No result was reported.</p>
      )}
    </div>
  );
}
