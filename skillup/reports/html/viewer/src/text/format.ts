/* Numbers as people read them. What is not known is "–", never 0. */
import type { Usage } from "../../dist/types";

type Maybe = number | null | undefined;
const NARROW = "\u202f";
const NONE = "–";

export const known = <T>(value: T | null | undefined): value is T =>
  value !== null && value !== undefined && !Number.isNaN(value);

export const count = (value: Maybe) =>
  known(value) ? String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, NARROW) : NONE;

export const plural = (value: number, one: string) =>
  `${count(value)} ${value === 1 ? one : `${one}s`}`;

/* A share, 0..1, as whole percent; a share that is not quite all or nothing never looks so. */
function whole(share: number): number {
  const rounded = Math.round(share * 100);
  if (rounded === 100 && share < 1 - 1e-9) return 99;
  return rounded === 0 && share > 1e-9 ? 1 : rounded;
}

export const percent = (share: Maybe) => (known(share) ? whole(share) + NARROW + "%" : NONE);
export const signed = (value: number) =>
  value > 0 ? `+${value}` : value < 0 ? `−${Math.abs(value)}` : "±0";
export const points = (share: Maybe) =>
  known(share) ? `${signed(Math.round(share * 100))} points` : NONE;
export const interval = (low: Maybe, high: Maybe) =>
  known(low) && known(high) ? `${whole(low)}–${whole(high)}${NARROW}%` : "";
export const score = (value: Maybe) =>
  known(value) ? String(Math.round(value * 100) / 100) : NONE;

export function duration(milliseconds: Maybe): string {
  if (!known(milliseconds)) return NONE;
  if (milliseconds < 999.5) return `${Math.round(milliseconds)}${NARROW}ms`;
  if (milliseconds < 9950) return `${(milliseconds / 1000).toFixed(1)}${NARROW}s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds}${NARROW}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}${NARROW}min ${seconds % 60}${NARROW}s`;
  return `${Math.floor(minutes / 60)}${NARROW}h ${minutes % 60}${NARROW}min`;
}

export function cost(dollars: Maybe): string {
  if (!known(dollars)) return NONE;
  if (dollars === 0) return "$0";
  return "$" + (dollars < 0.0995 ? dollars.toPrecision(2) : dollars.toFixed(2));
}

export const tokens = (usage: Usage | null | undefined) =>
  usage && (known(usage.input_tokens) || known(usage.output_tokens))
    ? (usage.input_tokens || 0) + (usage.output_tokens || 0)
    : null;

export function tokenText(tokens: Maybe): string {
  if (!known(tokens)) return NONE;
  if (tokens < 10000) return count(tokens);
  if (tokens < 999500) return (tokens / 1000).toFixed(tokens < 1e5 ? 1 : 0) + NARROW + "k";
  return (tokens / 1e6).toFixed(1) + NARROW + "M";
}

export function usageText(usage: Usage | null | undefined): string {
  const parts = [];
  if (known(usage?.input_tokens)) {
    const cached = usage.cached_input_tokens ? ` (${count(usage.cached_input_tokens)} cached)` : "";
    parts.push(`${count(usage.input_tokens)} in${cached}`);
  }
  if (known(usage?.output_tokens)) parts.push(`${count(usage.output_tokens)} out`);
  return parts.length ? `${parts.join(", ")} tokens` : "";
}

/* An ISO time in the reader's own zone; a text that is no time stays as it is. */
export function time(iso: string | null | undefined): string {
  if (!iso) return NONE;
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return String(iso);
  const two = (number: number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/* What a terminal says in a line of its own. */
export const asSentence = (line: string) => line.slice(0, 1).toUpperCase() + line.slice(1) + ".";

export function mean<T>(rows: T[], of: (row: T) => Maybe): number | null {
  const values = rows.map(of).filter(known);
  return values.length ? values.reduce((sum, one) => sum + one, 0) / values.length : null;
}
