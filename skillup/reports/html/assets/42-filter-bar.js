/* The filter above the table: words, statuses, and what else the rows differ by. */
(function () {
  const CHOICES = [
    ["suite", "All suites"],
    ["engine", "All engines"],
    ["variant", "With and without"],
    ["tag", "All tags"],
  ];
  const VARIANT = { with_skill: "with the skill", without_skill: "without the skill" };

  /* `changed` is called after every change of the filter. */
  SK.filterBar = function (rows, changed) {
    const filter = SK.page.filter;
    const text = SK.el("input", {
      id: "filter-text",
      type: "search",
      placeholder: "Case, title, tag, reason; -not",
      title:
        "Words that must all be in a case's id, title, tags, suite, engine, or the reason why it failed; " +
        "a word after - must not be there",
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": "Filter cases by words",
      "aria-keyshortcuts": "/",
      "aria-controls": "rows",
      value: filter.q || "",
      on: {
        input: () => {
          SK.setFilter({ q: text.value.trim() });
          changed();
        },
      },
    });
    return SK.el(
      "div",
      { class: "filter", role: "search" },
      text,
      deep(changed),
      SK.el("div", { class: "chips", role: "group", "aria-label": "Status" }, chips(rows, changed)),
      CHOICES.map(([key, all]) => choice(rows, key, all, changed)),
      order(changed),
      SK.button(
        "Clear",
        () => {
          SK.setFilter({ q: null, deep: null, status: null, tag: null, engine: null, variant: null, suite: null });
          SK.redraw();
          document.getElementById("filter-text").focus();
        },
        { id: "clear", class: "quiet" },
      ),
    );
  };

  /* Whether the words are looked for in the conversations, too. */
  function deep(changed) {
    const box = SK.el("input", {
      id: "filter-deep",
      type: "checkbox",
      checked: Boolean(SK.page.filter.deep),
      on: {
        change: () => {
          SK.setFilter({ deep: box.checked ? "1" : null });
          changed();
        },
      },
    });
    return SK.el(
      "label",
      { class: "deep", title: "Look for the words in messages, answers and tool calls, too" },
      box,
      " in conversations",
    );
  }

  /* What failed first, or as planned; a column's head outranks both. */
  function order(changed) {
    const button = SK.button(
      "As planned",
      () => {
        SK.setFilter({ sort: SK.page.filter.sort === "plan" ? null : "plan" });
        changed();
      },
      { id: "order", class: "chip", title: "In the order of the suite, instead of what failed first" },
    );
    return button;
  }

  function chips(rows, changed) {
    const counts = SK.tally(rows);
    const flaky = SK.casesOf(rows.filter((row) => row.flaky));
    const all = Object.keys(SK.STATUS)
      .filter((status) => counts[status])
      .map((status) => [status, SK.STATUS[status].word, counts[status]]);
    // Of cases, and beside the others, which are all trials together.
    if (flaky) all.push(["FLAKY", flaky === 1 ? "flaky case" : "flaky cases", flaky]);
    return all.map(([status, word, number]) => {
      const label = [
        SK.statusSign(status),
        " ",
        word + " ",
        SK.el("span", { class: "chip-count" }, SK.count(number)),
      ];
      return SK.chip("status", status, label, status, changed);
    });
  }

  /* A button that puts a value into the filter `key`, among others there, or takes it out again. */
  SK.chip = function (key, value, label, status, changed) {
    const chosen = () => new Set((SK.page.filter[key] || "").split(",").filter(Boolean));
    const chip = SK.button(
      label,
      () => {
        const values = chosen();
        if (!values.delete(value)) values.add(value);
        SK.setFilter({ [key]: [...values].join(",") || null });
        chip.setAttribute("aria-pressed", String(values.has(value)));
        changed();
      },
      {
        class: "chip status-" + status,
        "aria-pressed": String(chosen().has(value)),
        ["data-" + key]: value,
      },
    );
    return chip;
  };

  function choice(rows, key, all, changed) {
    const values = [...new Set(rows.flatMap((row) => (key === "tag" ? row.tags || [] : [row[key]])))].sort();
    if (values.length < (key === "tag" ? 1 : 2)) return null;
    const select = SK.el(
      "select",
      {
        "aria-label": all,
        id: "filter-" + key,
        on: {
          change: () => {
            SK.setFilter({ [key]: select.value || null });
            changed();
          },
        },
      },
      SK.el("option", { value: "" }, all),
      values.map((value) => option(key, value)),
    );
    select.value = SK.page.filter[key] || "";
    return select;
  }

  /* An option's value is kept as it is, also where it holds characters that are not shown. */
  function option(key, value) {
    const node = document.createElement("option");
    node.value = value;
    node.textContent = SK.plain(key === "variant" ? VARIANT[value] || value : value);
    return node;
  }
})();
