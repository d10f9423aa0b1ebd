/* Made by `python -m tests.reports.page.viewer_types`. */

export interface Analysis {
  confidence: number;
  overall: Overall | null;
  cases: Array<CaseReliability>;
  uplift: Array<Uplift>;
  triggering: Array<Triggering>;
  engines: Array<EngineColumn>;
}

export interface AtK {
  k: number;
  pass_at_k: number;
  pass_hat_k: number;
}

export interface CaseHistory {
  suite: string;
  case_id: string;
  engine: string;
  variant: string;
  marks: Array<RunMark>;
  failing_since: FailingSince | null;
}

export interface CaseReliability {
  suite: string;
  case_id: string;
  engine: string;
  variant: string;
  rate: Rate;
  error: number;
  skip: number;
  not_run: number;
  flaky: boolean;
  at_k: Array<AtK>;
  decision: Decision | null;
}

export interface CheckData {
  name: string;
  kind: string;
  passed: boolean;
  score: number;
  weight: number;
  required: boolean;
  assertable: boolean;
  evaluated: boolean;
  unknown: boolean;
  scope: string;
  role: "assertion" | "post_condition" | "expect" | "success" | "failure" | "judge" | "simulator";
  expected: string;
  found: string;
  excerpt: string;
  nearest: NearMatch | null;
  skill: string | null;
  error: string | null;
  error_kind: "template" | null;
  notes: Array<string>;
  votes: Array<number> | null;
  agreement: number | null;
  answers: Array<string>;
}

export interface CheckResult {
  name: string;
  kind: string;
  passed: boolean;
  score: number;
  weight: number;
  required: boolean;
  assertable: boolean;
  evaluated: boolean;
  unknown: boolean;
  scope: string;
  role: "assertion" | "post_condition" | "expect" | "success" | "failure" | "judge" | "simulator";
  expected: string;
  found: string;
  excerpt: string;
  spans: Array<EvidenceSpan>;
  nearest: NearMatch | null;
  skill: string | null;
  error: string | null;
  error_kind: "template" | null;
  notes: Array<string>;
  votes: Array<number> | null;
  agreement: number | null;
  answers: Array<string>;
  children: Array<CheckResult>;
}

export interface Counts {
  total: number;
  passed: number;
  fail: number;
  error: number;
  skip: number;
  pass_rate: number | null;
}

export interface Decided {
  suite: string;
  case_id: string;
  engine: string;
  variant: string;
  decision: Decision;
}

export interface Decision {
  verdict: "above" | "below" | "undecided";
  threshold: number;
  error_rate: number;
  trials: number;
  saved: number;
}

export interface Difference {
  with_skill: number;
  without_skill: number;
  difference: number;
  low: number | null;
  high: number | null;
  cases: number;
}

export interface Engine {
  profile: string;
  adapter: string | null;
  model: string | null;
  version: string | null;
}

export interface EngineColumn {
  suite: string;
  engine: string;
  rate: Rate;
  error: number;
  score: number | null;
  turns: number | null;
  tokens: number | null;
  cost_usd: number | null;
  duration_ms: number | null;
}

export interface EngineInfo {
  profile: string;
  adapter: string;
  command: Array<string>;
  version: string | null;
  model: string | null;
  permission: string;
  isolation: string;
}

export interface EvidenceSpan {
  turn: number;
  follow_up: number | null;
  part: "response" | "call" | "result" | "file";
  item: number | null;
  argument: string | null;
  path: string | null;
  start: number;
  end: number;
}

export interface FailingSince {
  run_id: string;
  started_at: string;
  runs: number;
}

export interface Index {
  schema: string;
  mode: "report" | "view";
  run: RunHead;
  summary: Summary;
  analysis: Analysis | null;
  deciding: Array<string>;
  decided: Array<Decided>;
  rows: Array<Row>;
  not_run: Array<string>;
  not_needed: Array<string>;
  warnings: Array<string>;
  history: Array<CaseHistory> | null;
  sides: Sides | null;
  compared: Array<string>;
  open?: string;
}

export interface Judging {
  calls: number;
  cached_calls: number;
  models: Array<string>;
  usage: Usage | null;
  cost_usd: number | null;
}

export interface NearMatch {
  wanted: string;
  is_pattern: boolean;
  matched: number;
  line: string;
  at: number;
  spans: Array<EvidenceSpan>;
  would_match: Array<"case" | "(?m)" | "(?s)" | "dash" | "quote" | "space" | "unicode">;
}

export interface OfRecord {
  suite: string;
  case_id: string;
  engine: EngineInfo;
  variant: "with_skill" | "without_skill";
  trial: number;
  attempt: number;
  skills: Array<SkillInfo>;
  started_at: string;
  session_id: string | null;
  variables: Record<string, string>;
  notes: Array<string>;
  skipped: string | null;
}

export interface OfTurn {
  turn_number: number;
  status: "completed" | "failed" | "skipped" | "error";
  reason: string;
  source: "case" | "simulator" | "follow_up" | "history";
  post_condition_passed: boolean | null;
  session_id: string | null;
  session_verified: boolean | null;
  usage: Usage | null;
  cost_usd: number | null;
  model: string | null;
  started_at: string | null;
  duration_ms: number;
  notes: Array<string>;
  simulator: SimulatorInfo | null;
  counted_by: string | null;
}

export interface Overall {
  passed: number;
  judged: number;
  rate: number | null;
  low: number | null;
  high: number | null;
  cases: number;
}

export interface Rate {
  passed: number;
  judged: number;
  rate: number | null;
  low: number | null;
  high: number | null;
}

export interface Row {
  suite: string;
  case_id: string;
  engine: string;
  variant: string;
  n: number;
  job: string;
  title: string | null;
  tags: Array<string>;
  trial: number;
  status: "PASS" | "FAIL" | "ERROR" | "SKIP" | "NOT_RUN" | "NOT_NEEDED" | "RUNNING" | "WAITING";
  reason: string;
  turns: Array<RowTurn>;
  flaky: boolean;
  score: number | null;
  end: boolean | null;
  duration_ms: number | null;
  cost_usd: number | null;
  tokens: number | null;
  error_kind: string | null;
  branch_of: string | null;
  simulator: RowSimulator | null;
}

export interface RowSimulator {
  messages: number;
  cost_usd: number | null;
  tokens: number | null;
  models: Array<string>;
}

export interface RowTurn {
  status: "completed" | "failed" | "skipped" | "error";
  ok: boolean | null;
  unjudged?: boolean;
}

export interface RunHead {
  run_id: string;
  started_at: string;
  finished: boolean;
  running: boolean;
  stopped: Stop | null;
  path: string;
  engines: Array<Engine>;
  suites: Array<string>;
  skills: Array<string>;
  skillup_version: string | null;
}

export interface RunMark {
  run_id: string;
  started_at: string;
  passed: number;
  judged: number;
  error: number;
  score: number | null;
}

export interface Side {
  status: "PASS" | "FAIL" | "ERROR" | "SKIP" | "NOT_RUN" | "NOT_NEEDED" | "RUNNING" | "WAITING";
  score: number | null;
  passed: number;
  judged: number;
  reason: string;
  n: number | null;
}

export interface SideRow {
  suite: string;
  case_id: string;
  engine: string;
  variant: string;
  a: Side | null;
  b: Side | null;
  change: "regressed" | "recovered" | "fewer_passes" | "more_passes" | "same" | "not_run" | "skipped" | "only_in_a" | "only_in_b";
  case_changed: boolean;
  how_sure: string;
}

export interface SideRun {
  run_id: string;
  started_at: string;
  path: string;
}

export interface Sides {
  a: SideRun;
  b: SideRun;
  reference: string;
  changed: Array<string>;
  summary: Array<string>;
  rows: Array<SideRow>;
}

export interface Simulated {
  messages: number;
  persona: string | null;
  stop: "completed" | "impossible" | "limit" | null;
  reason: string;
  fidelity: CheckResult | null;
  models: Array<string>;
  usage: Usage | null;
  cost_usd: number | null;
}

export interface SimulatedEnd {
  stop: "completed" | "impossible" | "limit";
  reason: string;
  info: SimulatorInfo | null;
}

export interface SimulatorInfo {
  usage: Usage | null;
  cost_usd: number | null;
  model: string | null;
  cached: boolean;
  sampling: Record<string, number>;
}

export interface SkillInfo {
  name: string;
  sha256: string;
  role: "under_test" | "distractor";
}

export interface Stop {
  kind: "max_fail" | "max_cost_usd" | "max_tokens" | "time_limit" | "quota" | "interrupted";
  message: string;
}

export interface Summary {
  total: number;
  passed: number;
  fail: number;
  error: number;
  skip: number;
  pass_rate: number | null;
  baseline: Counts | null;
  duration_ms: number;
  cost_usd: number | null;
  usage: Usage | null;
  judging: Judging | null;
}

export interface ToolResult {
  call_id: string;
  status: "success" | "error" | "unknown";
  content: string;
}

export interface TrialGrade {
  status: "PASS" | "FAIL" | "ERROR" | "SKIP";
  score: number;
  reason: string;
  execution_mode: string;
  usage: Usage | null;
  cost_usd: number | null;
  duration_ms: number;
  judging: Judging | null;
  simulator: Simulated | null;
  warnings: Array<string>;
}

export interface Triggering {
  suite: string;
  engine: string;
  skill: string;
  used_rightly: number;
  not_used_wrongly: number;
  used_wrongly: number;
  not_used_rightly: number;
  precision: number | null;
  recall: number | null;
  f1: number | null;
  distractors: Array<string>;
}

export interface TurnError {
  kind: "engine_not_found" | "engine_not_usable" | "auth" | "rate_limit" | "quota" | "overloaded" | "model_error" | "network" | "timeout" | "crash" | "protocol" | "output_limit" | "session_lost" | "session_mismatch" | "no_resume" | "capture" | "template" | "max_turns" | "budget" | "setup" | "unsupported" | "cancelled" | "judge" | "internal";
  message: string;
  evidence: string;
  retry_after_seconds: number | null;
}

export interface Uplift {
  suite: string;
  engine: string;
  case_id: string | null;
  with_skill: Rate;
  without_skill: Rate;
  uplift: number | null;
  low: number | null;
  high: number | null;
  p: number | null;
  cases: number;
  not_counted: Array<string>;
  turns: Difference | null;
  tokens: Difference | null;
  cost_usd: Difference | null;
  duration_ms: Difference | null;
}

export interface Usage {
  input_tokens: number | null;
  cached_input_tokens: number | null;
  cache_write_tokens: number | null;
  output_tokens: number | null;
  reasoning_tokens: number | null;
  requests: number | null;
}

export interface WorkspaceChanges {
  added: Array<string>;
  modified: Array<string>;
  deleted: Array<string>;
  diff: string;
}
