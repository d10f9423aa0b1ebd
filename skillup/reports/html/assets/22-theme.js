/* Light and dark: the system's wish, unless the reader chose; the choice is remembered. */
(function () {
  const KEY = "skillup-theme";

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    } // storage may be refused
  }

  SK.isDark = function () {
    const chosen = document.documentElement.dataset.theme;
    if (chosen) return chosen === "dark";
    return matchMedia("(prefers-color-scheme: dark)").matches;
  };

  SK.startTheme = function () {
    const chosen = stored();
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  };

  SK.toggleTheme = function () {
    const next = SK.isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem(KEY, next);
    } catch {
      /* it holds for this page only */
    }
    label();
    SK.announce(next === "dark" ? "Dark colours" : "Light colours");
  };

  function label() {
    const button = document.getElementById("theme");
    if (!button) return;
    button.textContent = SK.isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", SK.isDark() ? "Use light colours" : "Use dark colours");
  }

  SK.themeButton = function () {
    queueMicrotask(label);
    return SK.button("Dark", SK.toggleTheme, { id: "theme", class: "quiet" });
  };
})();
