/* Times that run on while a trial or a run does, between what the server tells of it. */
(function () {
  let ticking = null;

  /* How long it is since `iso`, by the clock of the machine that holds the run. */
  SK.timeSince = function (iso) {
    const { now } = SK.page.index.run;
    if (SK.page.mode === "report") return SK.duration(Date.parse(now) - Date.parse(iso));
    const ahead = Date.parse(now) - SK.page.toldAt; // of this machine's clock
    const node = SK.el("span", { class: "running-time", "data-since": Date.parse(iso) - ahead });
    show(node);
    if (ticking === null) ticking = setInterval(tick, 1000);
    return node;
  };

  function tick() {
    for (const node of document.querySelectorAll(".running-time")) show(node);
  }

  /* In whole seconds, as the next ones are at hand. */
  function show(node) {
    const seconds = Math.max(0, Math.floor((Date.now() - Number(node.dataset.since)) / 1000));
    node.textContent = seconds < 10 ? seconds + "\u202fs" : SK.duration(seconds * 1000);
  }
})();
