/* Light and dark: the system's wish, unless the reader chose; the choice is remembered. */
import { announce, button as skButton } from "../dom.js";

const KEY = "skillup-theme";

function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  } // storage may be refused
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

export function startTheme() {
  const chosen = stored();
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
}

export function toggleTheme() {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    /* it holds for this page only */
  }
  label();
  announce(next === "dark" ? "Dark colours" : "Light colours");
}

function label() {
  const button = document.getElementById("theme");
  if (!button) return;
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
}

export function themeButton() {
  queueMicrotask(label);
  return skButton("Dark", toggleTheme, { id: "theme", class: "quiet" });
}
