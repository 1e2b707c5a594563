// Descriptions of notes and spans, and the lists that show them.

import { element } from "./note.js";

export const GROUPS = {
  NAME: "name", HOSPITAL: "place", CITY: "place", ADDRESS: "place", ZIP: "place", DATE: "time", AGE: "time",
  PHONE: "contact", FAX: "contact", EMAIL: "contact", URL: "contact", IP: "contact",
};
export const DIGITS = ["NAME", "DATE", "HOSPITAL", "CITY", "ADDRESS", "PHONE", "MRN", "AGE", "ID", "EMAIL"];
export const STATES = { open: "open", kept: "accepted", dropped: "rejected" };
const SIGNS = { open: "○", kept: "✓", dropped: "✗" };

export function describe(span) {
  const source = span.added ? "added by you" : `${span.detector}${span.why ? `: ${span.why}` : ""}, score ${span.score.toFixed(2)}`;
  const changed = span.changed ? ", corrected" : "";
  if (span.detector === "sample") return STATES[span.state];
  return `${span.label}, ${STATES[span.state]}${changed} (${source})`;
}

// Keep focus and selection in the note when a button is clicked.
export const keepFocus = (event) => event.preventDefault();

/** An entry of the list of notes. */
export function noteItem(note, current, open) {
  const item = element("li");
  const button = element("button", note.done ? "done" : "");
  button.type = "button";
  button.append(
    element("span", "sign", note.done ? "✓" : note.decided ? "◐" : "○"),
    element("span", "id", note.id),
  );
  const parts = [`Note ${note.id}`, note.done ? "done" : "not done"];
  if (note.doubt !== undefined) {
    const doubt = `${note.spans} detected, doubt ${note.doubt}`;
    button.append(element("span", "doubt", doubt));
    button.title = "doubt: number of undetected unknown words, plus 1 minus the score of each span";
    parts.push(doubt);
  }
  button.setAttribute("aria-label", parts.join(", "));
  if (current) button.setAttribute("aria-current", "true");
  button.addEventListener("mousedown", keepFocus);
  button.addEventListener("click", open);
  item.append(button);
  return item;
}

/** An entry of the list of spans; `words`: the text of the span. */
export function spanItem(span, words, current, choose) {
  const item = element("li");
  const button = element("button", span.state);
  button.type = "button";
  button.tabIndex = current ? 0 : -1;
  button.append(
    element("span", "sign", SIGNS[span.state]),
    chip(span),
    element("span", "words", short(words, 60)),
    element("span", "source", span.description.slice(span.description.indexOf("(") + 1, -1) + (span.changed ? " · corrected" : "")),
  );
  if (current) button.setAttribute("aria-current", "true");
  button.addEventListener("mousedown", keepFocus);
  button.addEventListener("click", choose);
  item.append(button);
  return item;
}

export function chip(span) {
  const badge = element("span", "chip", span.label);
  badge.dataset.group = span.group;
  return badge;
}

export const short = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

export const ORDERS = {
  place: (a, b) => a.start - b.start,
  score: (a, b) => a.score - b.score || a.start - b.start,
  label: (a, b) => a.label.localeCompare(b.label) || a.start - b.start,
  detector: (a, b) => a.detector.localeCompare(b.detector) || a.start - b.start,
};
/** Fill a filter with the values of a field in the note's spans, and their counts. */
export function fillFilter(select, spans, field, names = {}) {
  const counts = new Map();
  for (const span of spans) counts.set(span[field], (counts.get(span[field]) ?? 0) + 1);
  const chosen = select.value;
  if (chosen && !counts.has(chosen)) counts.set(chosen, 0);
  const options = [["", `all (${spans.length})`], ...[...counts].sort().map(([name, n]) => [name, `${names[name] ?? name} (${n})`])];
  const signature = JSON.stringify(options);
  if (select.dataset.signature === signature) return;
  select.dataset.signature = signature;
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  select.value = chosen;
}
