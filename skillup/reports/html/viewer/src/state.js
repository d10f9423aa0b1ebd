/* What the whole page shares: words and signs, and what is shown now. */
/* What each status is called, and the sign that says it without colour. */
export const STATUS = {
  PASS: { word: "passed", sign: "●" },
  FAIL: { word: "failed", sign: "✗" },
  ERROR: { word: "error", sign: "!" },
  FLAKY: { word: "flaky", sign: "◐" }, // of a case, never of a trial
  SKIP: { word: "skipped", sign: "○" },
  NOT_HELD: { word: "not run", sign: "–" },
  NOT_NEEDED: { word: "not needed", sign: "·" }, // saved by --until-decided
  RUNNING: { word: "running", sign: "◌" },
  WAITING: { word: "waiting", sign: "–" }, // not begun, while the run goes on
};
export const KIND_SIGN = {
  shell: "$",
  read: "▤",
  write: "✎",
  edit: "±",
  search: "⌕",
  web: "⌂",
  mcp: "⧉",
  skill: "★",
  agent: "☺",
  other: "·",
};
 // what is shown now: index, runId, filter, …; see 16-data.js and 20-route.js
export const page = {};
