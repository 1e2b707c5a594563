// The current note: load it, show it, and move between its spans.

import { GROUPS, ORDERS, STATES, chip, describe, fillFilter, noteItem, short, spanItem } from "./lists.js";
import { element } from "./note.js";
import { ask } from "./server.js";
import { announce, byId, currentSpan, page, queueStep, state, written } from "./state.js";

export async function openNote(at) {
  if (at < 0 || at >= state.notes.length) return announce(at < 0 ? "This is the first note." : "This is the last note.");
  const note = await ask("note", { at });
  state.at = at;
  state.current = null;
  getSelection().removeAllRanges();
  page.open(note.text);
  rows.clear();
  state.suspects = note.suspects.map(([start, end]) => [page.offsets.unit(start), page.offsets.unit(end)]);
  take(note);
  byId("text").scrollTop = 0;
  const first = shown().find((span) => span.state === "open") ?? shown()[0];
  choose(first?.key ?? null);
  showQueue();
}

export function take(answer) {
  const unit = (point) => page.offsets.unit(point);
  state.spans = answer.spans.map((span) => {
    const converted = { ...span, start: unit(span.start), end: unit(span.end), points: [span.start, span.end] };
    converted.key = span.place.join("-");
    converted.group = GROUPS[span.label] ?? "number";
    converted.description = describe(converted);
    return converted;
  });
  state.pieces = answer.pieces.map(([start, end, text]) => ({ start: unit(start), end: unit(end), text }));
  state.notes[answer.at] = answer.listed;
  byId("undo").disabled = !answer.undo;
}

// Display

export function shown() {
  const [label, source, status] = ["by-label", "by-source", "by-state"].map((id) => byId(id).value);
  return state.spans.filter((span) =>
    (!label || span.label === label) && (!source || span.detector === source) && (!status || span.state === status));
}

export function show() {
  page.show(state.spans, state.suspects, state.pieces, state.current);
  showList();
  showCurrent();
  showCounts();
}

/** Return the unknown words outside all active spans. */
export function freeSuspects() {
  const live = state.spans.filter((span) => span.state !== "dropped").sort(ORDERS.place);
  let at = 0;
  return state.suspects.filter(([start, end]) => {
    while (at < live.length && live[at].end <= start) at += 1;
    return at === live.length || live[at].start >= end;
  });
}

/** Ask about a sampled location; a passage has no span before the reviewer adds one. */
function showQuestion() {
  const asked = state.spans.find((span) => !span.added);
  byId("question").textContent = asked
    ? "Is the marked text an identifier, or a part of one?"
    : "Add each identifier in the underlined text: select it and press Enter. Then: Done.";
  byId("done-text").textContent = asked?.state === "open" ? "Unsure, next" : "Done, next";
}

export function showCounts() {
  const done = state.notes.filter((note) => note.done).length;
  byId("progress").max = state.notes.length || 1;
  byId("progress").value = done;
  const things = state.blind ? "locations" : "notes";
  byId("counts").textContent = `${done} of ${state.notes.length} ${things} done · reviewer ${state.reviewer}`;
  const note = state.notes[state.at];
  if (!note) return;
  byId("note-head").textContent = state.blind ? note.id : `Note ${state.at + 1}: ${note.id}`;
  const open = state.spans.filter((span) => span.state === "open").length;
  const unknown = freeSuspects().length;
  const counts = `${state.spans.length} detected, ${open} open · ${unknown} unknown word${unknown === 1 ? "" : "s"}`;
  byId("note-status").textContent = [note.done ? "done" : "", state.blind ? "" : counts].filter(Boolean).join(" · ");
  if (state.blind) showQuestion();
  listed[state.at]?.replaceWith((listed[state.at] = listEntry(note, state.at)));
}

const listed = [];
const listEntry = (note, at) => noteItem(note, at === state.at, () => queueStep(() => openNote(at)));

function showQueue() {
  if (!listed.length) {
    listed.push(...state.notes.map(listEntry));
    byId("notes").replaceChildren(...listed);
  }
  document.querySelectorAll("#notes [aria-current]").forEach((old) => {
    old.removeAttribute("aria-current");
  });
  const button = listed[state.at]?.firstChild;
  button?.setAttribute("aria-current", "true");
  button?.scrollIntoView({ block: "nearest" });
}

const LISTED = 400; // maximum entries; in longer lists, those around the selected span
const rows = new Map(); // span key -> [signature, list element]

function showList() {
  fillFilter(byId("by-label"), state.spans, "label");
  fillFilter(byId("by-source"), state.spans, "detector");
  fillFilter(byId("by-state"), state.spans, "state", STATES);
  const spans = shown().sort(ORDERS[byId("by-order").value]);
  const from = Math.max(0, spans.findIndex((span) => span.key === state.current) - LISTED / 2);
  const items = spans.slice(from, from + LISTED).map((span) => {
    const signature = JSON.stringify([span.description, span.start, span.end, span.key === state.current]);
    const old = rows.get(span.key);
    if (old && old[0] === signature) return old[1];
    const item = spanItem(span, written(span), span.key === state.current, () => queueStep(() => choose(span.key)));
    rows.set(span.key, [signature, item]);
    return item;
  });
  const list = byId("spans");
  if (items.length !== list.children.length || items.some((item, at) => item !== list.children[at])) {
    list.replaceChildren(...items);
  }
  list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  const [count, all] = [spans.length, state.spans.length];
  byId("spans-head").textContent = `${state.blind ? "Spans" : "Detected spans"} (${count}${count < all ? ` of ${all}` : ""})`;
  byId("spans-part").textContent = items.length < count ? `${from + 1} to ${from + items.length} of ${count}` : "";
}

function showCurrent() {
  const span = currentSpan();
  const text = byId("current-text");
  if (!span) {
    text.textContent = state.spans.length || state.blind ? "No span selected." : "No identifiers detected in this note.";
    return;
  }
  if (state.blind) return text.replaceChildren(element("b", "", short(written(span), 80)), element("br"), STATES[span.state]);
  const treated = state.pieces.find((piece) => piece.start <= span.start && span.end <= piece.end);
  const becomes = treated ? ` → ${treated.text ? short(treated.text, 60) : "nothing"}` : " unchanged";
  text.replaceChildren(chip(span), " ", element("b", "", short(written(span), 80)), becomes, element("br"), element("small", "", span.description));
}

// Navigation between spans

export function choose(key, scroll = true) {
  state.current = key;
  show();
  const span = currentSpan();
  if (!span) return;
  if (scroll) page.revealSpan(span);
  const at = state.spans.indexOf(span) + 1;
  announce(`Span ${at} of ${state.spans.length}: ${written(span)}: ${span.description}`);
}

export function step(by) {
  getSelection().removeAllRanges();
  const spans = shown().sort(ORDERS.place);
  if (!spans.length) return announce("This note has no spans.");
  const at = spans.findIndex((span) => span.key === state.current);
  const from = currentSpan()?.start ?? 0;
  const next = at >= 0 ? at + by : by > 0 ? spans.findIndex((s) => s.start >= from) : spans.findLastIndex((s) => s.start < from);
  if (next < 0 || next >= spans.length) return announce(by > 0 ? "This is the last span." : "This is the first span.");
  choose(spans[next].key);
}
