/* What could not be held, and what to do about it; links to the raw streams; things to copy. */
(function () {
  /* `raw`: links to what the agent printed, where it is known. */
  SK.error = function (error, title, raw) {
    if (!error) return null;
    return SK.el(
      "section",
      { class: "error-box", "aria-label": title },
      SK.el(
        "h4",
        {},
        SK.el("span", { class: "sign status-ERROR", "aria-hidden": "true" }, "! "),
        title + ": ",
        SK.el("code", {}, error.kind),
      ),
      SK.el("p", {}, error.message),
      error.advice
        ? SK.el("p", { class: "advice" }, SK.el("strong", {}, "What to do: "), withCode(error.advice))
        : null,
      raw && raw.length
        ? SK.el("p", { class: "error-raw" }, SK.el("strong", {}, "All that it printed: "), SK.rawLinks(raw))
        : null,
      error.evidence
        ? SK.fold(
            {},
            "Evidence",
            () => SK.textBlock(error.evidence, { name: "code", markdown: false }),
            error.evidence.length < 2000,
          )
        : null,
    );
  };

  /* What stands between backticks in our own words. */
  const withCode = (text) =>
    text.split("`").map((part, at) => (at % 2 ? SK.el("code", {}, part) : part));

  /* The streams of the last turn that has any. */
  SK.lastRaw = function (detail) {
    const turns = detail.turns.filter((turn) => (turn.raw || []).length);
    return turns.length ? turns[turns.length - 1].raw : null;
  };

  SK.rawLinks = function (raw) {
    if (!raw || !raw.length) return null;
    const links = () =>
      SK.el(
        "span",
        { class: "raw" },
        raw.map((one, at) => [at ? " " : null, SK.el("a", { href: one.href }, one.name)]),
      );
    return raw.length > 6 ? SK.fold({ class: "raw-fold" }, `Files (${raw.length})`, links) : links();
  };

  /* A short text with a button that copies it. */
  SK.copyable = function (text, what) {
    const button = SK.button(
      "copy",
      async () => {
        try {
          await navigator.clipboard.writeText(text);
        } catch {
          copyOldWay(text);
        }
        button.textContent = "copied";
        SK.announce(what + " copied");
        setTimeout(() => {
          button.textContent = "copy";
        }, 1500);
      },
      { class: "copy", "aria-label": "Copy the " + what },
    );
    return SK.el("span", { class: "copyable" }, SK.el("code", {}, text), " ", button);
  };

  /* Pages that were opened from a file may not use the clipboard's own interface. */
  function copyOldWay(text) {
    const area = SK.el("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.appendChild(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
})();
