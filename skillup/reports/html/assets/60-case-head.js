/* The head of a conversation: which trial it is, its verdict, and what it took. */
(function () {
  SK.caseHead = function (detail, row) {
    const grade = detail.grade || {};
    const status = grade.status || (row && row.status) || "NOT_HELD";
    return SK.el(
      "header",
      { class: "case-head" },
      SK.el(
        "p",
        { class: "way" },
        SK.el("a", { href: SK.page.tableAddress || SK.address("") }, "← All conversations"),
        neighbours(detail.n),
      ),
      SK.el(
        "h1",
        {},
        detail.case_id,
        " ",
        detail.title ? SK.el("span", { class: "case-title" }, detail.title) : null,
      ),
      SK.el(
        "p",
        { class: "verdict" },
        SK.status(status),
        " ",
        SK.known(grade.score) && /PASS|FAIL/.test(status)
          ? SK.el("span", { class: "score" }, "score " + SK.score(grade.score))
          : null,
        " ",
        grade.reason ? SK.el("span", { class: "verdict-reason" }, SK.reason(detail)) : null,
      ),
      (grade.warnings || []).map((text) => SK.el("p", { class: "notice" }, text)),
      detail.skipped ? SK.el("p", { class: "notice" }, "Not held: ", detail.skipped) : null,
      SK.error(detail.error, "The trial could not be held", SK.lastRaw(detail)),
      SK.attemptsTold(detail),
      SK.el("div", { class: "siblings" }, SK.trialLinks(detail.n), SK.compareLinks(detail.n)),
      facts(detail, grade),
      SK.family(detail),
      turnLinks(detail),
    );
  };

  function neighbours(n) {
    const { next, previous } = SK.failingNeighbours(n);
    if (!next && !previous) return null;
    const link = (row, text, key) =>
      row
        ? SK.el("a", { href: SK.trialAddress(row.n), title: row.case_id, "aria-keyshortcuts": key }, text)
        : null;
    return SK.el(
      "span",
      { class: "neighbours" },
      link(previous, "↑ previous failing case", "p"),
      previous && next ? " · " : null,
      link(next, "↓ next failing case", "n"),
    );
  }

  function facts(detail, grade) {
    const engine = detail.engine || {};
    const pair = (label, ...inside) =>
      inside.some(Boolean) ? SK.el("div", {}, SK.el("dt", {}, label), SK.el("dd", {}, inside)) : null;
    const spent = (part) =>
      part &&
      [SK.cost(part.cost_usd), SK.usageText(part.usage)].filter((text) => text && text !== "–").join(", ");
    const judging = grade.judging;
    const user = grade.simulator;
    return SK.el(
      "dl",
      { class: "facts" },
      pair("suite", detail.suite),
      pair(
        "engine",
        engine.profile ? SK.engineText(engine) : null,
        [engine.permission, engine.isolation].filter(Boolean).length
          ? SK.el(
              "span",
              { class: "aside" },
              ` ${[engine.permission, engine.isolation].filter(Boolean).join(", ")}`,
            )
          : null,
      ),
      pair("variant", detail.variant === "without_skill" ? "without the skill" : null),
      pair(
        "trial",
        detail.trial > 1 || detail.attempt > 1
          ? `${detail.trial}${detail.attempt > 1 ? `, attempt ${detail.attempt}` : ""}`
          : null,
      ),
      pair(
        "mode",
        grade.execution_mode === "single_shot" ? "single shot: all turns were sent as one message" : null,
      ),
      pair(
        "time",
        SK.known(grade.duration_ms) ? SK.duration(grade.duration_ms) : null,
        detail.started_at ? SK.el("span", { class: "aside" }, " from " + SK.time(detail.started_at)) : null,
      ),
      pair("agent", spent(grade)),
      pair(
        "judges",
        judging && judging.calls
          ? [
              SK.plural(judging.calls, "request"),
              judging.cached_calls ? ` (${judging.cached_calls} from the cache)` : null,
              spent(judging) ? ", " + spent(judging) : null,
              (judging.models || []).length ? ", " + judging.models.join(", ") : null,
            ]
          : null,
      ),
      pair(
        "simulated user",
        user
          ? [
              SK.plural(user.messages, "message"),
              spent(user) ? ", " + spent(user) : null,
              (user.models || []).length ? ", " + user.models.join(", ") : null,
            ]
          : null,
      ),
      pair("session", detail.session_id ? SK.copyable(detail.session_id, "session id") : null),
      pair(
        "skills",
        (detail.skills || []).length
          ? detail.skills.map((skill, at) => [
              at ? ", " : null,
              SK.el(
                "span",
                { title: "sha256 " + skill.sha256 },
                skill.name,
                skill.role === "distractor" ? SK.el("span", { class: "aside" }, " (distractor)") : null,
              ),
            ])
          : null,
      ),
      pair(
        "variables",
        Object.keys(detail.variables || {}).length
          ? SK.fold({}, SK.plural(Object.keys(detail.variables).length, "variable"), () =>
              SK.el(
                "ul",
                { class: "plain" },
                Object.entries(detail.variables).map(([name, value]) =>
                  SK.el("li", {}, SK.el("code", {}, `<<${name}>>`), " = ", SK.el("span", {}, String(value))),
                ),
              ),
            )
          : null,
      ),
      pair(
        "notes",
        (detail.notes || []).length ? detail.notes.map((note) => SK.el("p", { class: "note" }, note)) : null,
      ),
      pair("files", SK.rawLinks(detail.raw)),
    );
  }

  /* The reason for the verdict, as a link to the check that decided. */
  SK.reason = function (detail) {
    const part = /FAIL|ERROR|SKIP/.test((detail.grade || {}).status) ? SK.failedPart(detail) : null;
    const { reason } = detail.grade;
    if (part === null) return reason;
    return SK.el(
      "a",
      {
        href: SK.trialAddress(detail.n, part),
        class: "jump to-check",
        "data-turn": part,
        title: "Show the check",
      },
      reason,
    );
  };

  function turnLinks(detail) {
    const end = SK.markOfEnd(detail);
    const chip = (part, mark, name, title) =>
      SK.el(
        "a",
        {
          href: SK.trialAddress(detail.n, part),
          class: "jump status-" + mark.status,
          "data-turn": part,
          title,
        },
        SK.el("span", { class: "sign", "aria-hidden": "true" }, mark.sign),
        " ",
        name,
        SK.el("span", { class: "visually-hidden" }, ", " + mark.word),
      );
    if (detail.turns.length + (end ? 1 : 0) < 2) return null;
    return SK.el(
      "nav",
      { class: "turn-links", "aria-label": "Turns" },
      detail.turns.map((turn) =>
        chip(
          turn.turn_number,
          SK.markOfTurn(turn),
          String(turn.turn_number),
          (turn.content || "").slice(0, 120),
        ),
      ),
      end ? chip("end", end, "end", "Checks of the whole conversation") : null,
    );
  }
})();
