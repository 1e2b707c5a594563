// What is said of notes and spans, and the lists of them.

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
  const changed = span.changed ? ", put right" : "";
  return `${span.label}, ${STATES[span.state]}${changed} (${source})`;
}

// A click does not take the keyboard away from the note, nor the mark.
export const stayThere = (event) => event.preventDefault();

/** A line of the list of notes. */
export function noteItem(note, current, open) {
  const item = element("li");
  const button = element("button", note.done ? "done" : "");
  button.type = "button";
  button.append(
    element("span", "sign", note.done ? "✓" : note.decided ? "◐" : "○"),
    element("span", "id", note.id),
    element("span", "doubt", `${note.spans} found, doubt ${note.doubt}`),
  );
  button.setAttribute("aria-label", `Note ${note.id}, ${note.done ? "done" : "not done"}, ${note.spans} found, doubt ${note.doubt}`);
  if (current) button.setAttribute("aria-current", "true");
  button.title = "doubt: words that are in no list and that nothing found, and 1 less the score of each span";
  button.addEventListener("mousedown", stayThere);
  button.addEventListener("click", open);
  item.append(button);
  return item;
}

/** A line of the list of spans; `words`: what stands there. */
export function spanItem(span, words, current, choose) {
  const item = element("li");
  const button = element("button", span.state);
  button.type = "button";
  button.tabIndex = current ? 0 : -1;
  button.append(
    element("span", "sign", SIGNS[span.state]),
    chip(span),
    element("span", "words", short(words, 60)),
    element("span", "source", span.said.slice(span.said.indexOf("(") + 1, -1) + (span.changed ? " · put right" : "")),
  );
  if (current) button.setAttribute("aria-current", "true");
  button.addEventListener("mousedown", stayThere);
  button.addEventListener("click", choose);
  item.append(button);
  return item;
}

export function chip(span) {
  const made = element("span", "chip", span.label);
  made.dataset.group = span.group;
  return made;
}

export const short = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

export const ORDERS = {
  place: (one, other) => one.start - other.start,
  score: (one, other) => one.score - other.score || one.start - other.start,
  label: (one, other) => one.label.localeCompare(other.label) || one.start - other.start,
  detector: (one, other) => one.detector.localeCompare(other.detector) || one.start - other.start,
};
/** The choices of a filter: what the spans of the note have in a field, with their numbers. */
export function fillFilter(select, spans, field, names = {}) {
  const counts = new Map();
  for (const span of spans) counts.set(span[field], (counts.get(span[field]) ?? 0) + 1);
  const chosen = select.value;
  if (chosen && !counts.has(chosen)) counts.set(chosen, 0);
  const made = [["", `all (${spans.length})`], ...[...counts].sort().map(([name, n]) => [name, `${names[name] ?? name} (${n})`])];
  const says = JSON.stringify(made);
  if (select.dataset.says === says) return;
  select.dataset.says = says;
  select.replaceChildren(...made.map(([value, text]) => new Option(text, value)));
  select.value = chosen;
}
