/* The line above every page: what run this is, and the few switches. */
(function () {
  SK.showTop = function () {
    const { index, mode } = SK.page;
    const run = index && index.run;
    const home = SK.el("a", { class: "brand", href: mode === "view" ? "#/" : SK.address("") }, "skillup");
    const trail = run
      ? SK.el(
          "span",
          { class: "trail" },
          mode === "view" ? [SK.el("a", { href: "#/" }, "All runs"), " / "] : null,
          SK.el("a", { href: SK.address(""), class: "run-id", title: run.path || "" }, run.run_id),
        )
      : null;
    SK.replace(
      document.getElementById("top"),
      SK.el("nav", { "aria-label": "Report" }, home, trail),
      SK.el("span", { class: "top-facts" }, run ? facts(run) : null),
      SK.el(
        "span",
        { class: "switches" },
        index ? SK.button("Print", () => SK.print(), { class: "quiet print" }) : null,
        SK.button("Keys", () => SK.toggleHelp(), { class: "quiet", "aria-label": "Show the keys" }),
        SK.themeButton(),
      ),
    );
  };

  function facts(run) {
    const live = run.running ? SK.el("span", { class: "live", id: "live" }, "running") : null;
    return [live, SK.el("time", { datetime: run.started_at }, SK.time(run.started_at))];
  }
})();
