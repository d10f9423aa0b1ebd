/* One namespace for the whole page: the files are joined, in the order of their names, into one
   classic script. A file adds its functions to SK and calls others only after the page has started
   (90-start.js), so that the order does not matter beyond this file being first. */
"use strict";
window.SK = {
  /* What each status is called, and the sign that says it without colour. */
  STATUS: {
    PASS: { word: "passed", sign: "●" },
    FAIL: { word: "failed", sign: "✗" },
    ERROR: { word: "error", sign: "!" },
    FLAKY: { word: "flaky", sign: "◐" }, // of a case, never of a trial
    SKIP: { word: "skipped", sign: "○" },
    NOT_HELD: { word: "not run", sign: "–" },
    NOT_NEEDED: { word: "not needed", sign: "·" }, // saved by --until-decided
    RUNNING: { word: "running", sign: "◌" },
    WAITING: { word: "waiting", sign: "–" }, // not begun, while the run goes on
  },
  KIND_SIGN: {
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
  },
  page: {}, // what is shown now: index, runId, filter, …; see 16-data.js and 20-route.js
};
