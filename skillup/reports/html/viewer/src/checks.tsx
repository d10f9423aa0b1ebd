/* Checks: passed or not, what was expected and found, and where it stands in the text. */
import type { Check } from "./data";
import { checksText } from "./data";
import { Aside, Button, Fold, Verdict, showMark } from "./dom";
import { known, percent, score } from "./text/format";
import { Text } from "./text/text";

export function Checks({ checks, title }: { checks: Check[]; title: string }) {
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
  if (check.moot) return [check.moot === "skips the rest" ? "○" : "–", check.moot, "SKIP"];
  if (check.unknown) return ["?", "unknown: the judge cannot tell", "SKIP"];
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
    </>
  );
  const name = `check check-${status}`;
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
  const line = (label: string, text: string | null | undefined, name = "") =>
    text ? (
      <>
        <dt>{label}</dt>
        <dd>
          <Text text={text} name={name} />
        </dd>
      </>
    ) : null;
  const near = check.nearest;
  const start = near ? [...near.line].slice(0, near.at).join("").length : 0;
  const scope = check.scope ? `, of ${check.scope}` : "";
  return (
    <div class="check-inside">
      <dl>
        {line("could not be evaluated", check.error)}
        {line("expected", check.name.includes(check.expected) ? null : check.expected)}
        {line("found", (check.found || "").replace(/^found /, ""))}
        {near ? (
          <>
            <dt>nearest</dt>
            <dd>
              <Text
                text={near.line}
                name="code"
                ranges={[{ start, end: near.line.length, class: "evidence evidence-failed" }]}
              />
              <Aside>{check.differs}</Aside>
            </dd>
          </>
        ) : null}
        {/* An excerpt is one line, in which ⏎ stands for line ends. */}
        {(inChanges || !check.key) && !near
          ? line("excerpt", check.excerpt?.replace(/⏎/g, "\n"), "code excerpt")
          : null}
        {(check.notes || []).map((note) => line("note", note))}
        {(check.votes?.length || 0) > 1 ? line("votes", check.votes!.map(score).join(", ")) : null}
        {check.kind && check.kind !== check.name ? line("check", check.kind + scope) : null}
      </dl>
      {check.key ? (
        <Button
          class="show-evidence"
          onClick={(event) => showMark(event.currentTarget, check.key!)}
        >
          {inChanges ? "Show what changed" : "Show in the text"}
        </Button>
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
