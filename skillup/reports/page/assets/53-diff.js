/* Differences: a unified diff by line, with its signs kept, so that colour is not all that tells. */
(function () {
  function kind(line) {
    if (/^(diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename |\*\*\* )/.test(line))
      return "diff-file";
    if (line.startsWith("@@")) return "diff-place";
    if (line.startsWith("+")) return "diff-added";
    if (line.startsWith("-")) return "diff-removed";
    return "diff-same";
  }

  SK.diff = function (text) {
    const lines = text.replace(/\n$/, "").split("\n");
    const body = SK.el("div", { class: "text code diff" });
    // Runs of lines of one kind are one element: a long diff stays cheap.
    let at = 0;
    while (at < lines.length) {
      const name = kind(lines[at]);
      let end = at + 1;
      while (end < lines.length && kind(lines[end]) === name) end++;
      body.append(SK.el("div", { class: name, text: lines.slice(at, end).join("\n") }));
      at = end;
    }
    return SK.folded(body, text);
  };

  /* An edit that a tool was asked to make. */
  SK.replacement = function (before, after) {
    const signed = (sign, text) => (text === "" ? [] : text.split("\n").map((line) => sign + line));
    return SK.diff([...signed("-", before), ...signed("+", after)].join("\n"));
  };

  /* What a turn did to the workspace. */
  SK.changes = function (changes) {
    const parts = [
      ["added", "+"],
      ["modified", "±"],
      ["deleted", "−"],
    ].filter(([name]) => (changes[name] || []).length);
    if (!parts.length && !changes.diff) return null;
    const words = parts.map(([name]) => `${changes[name].length} ${name}`).join(", ");
    const first = parts
      .flatMap(([name]) => changes[name])
      .slice(0, 3)
      .join(", ");
    return SK.fold(
      { class: "changes" },
      [
        SK.el("span", { class: "label" }, "workspace"),
        " ",
        words || "changed",
        SK.el("span", { class: "aside" }, " " + first),
      ],
      () =>
        SK.el(
          "div",
          { class: "tool-inside" },
          SK.el(
            "ul",
            { class: "plain files" },
            parts.flatMap(([name, sign]) =>
              changes[name].map((path) =>
                SK.el(
                  "li",
                  { class: "file-" + name },
                  SK.el("span", { "aria-hidden": "true" }, sign + " "),
                  SK.el("code", {}, path),
                  SK.el("span", { class: "visually-hidden" }, " " + name),
                ),
              ),
            ),
          ),
          changes.diff ? SK.diff(changes.diff) : null,
        ),
    );
  };
})();
