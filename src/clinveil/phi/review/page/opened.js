// The note that is open: fetching it, showing it, and going from span to span.

import { GROUPS, ORDERS, STATES, chip, describe, fillFilter, noteItem, short, spanItem } from "./lists.js";
import { element } from "./note.js";
import { ask } from "./server.js";
import { announce, byId, currentSpan, page, queueStep, state, written } from "./state.js";

export async function openNote(at) {
  if (at < 0 || at >= state.notes.length) return announce(at < 0 ? "This is the first note." : "This is the last note.");
  const said = await ask("note", { at });
  state.at = at;
  state.current = null;
  getSelection().removeAllRanges();
  page.open(said.text);
  rows.clear();
  state.suspects = said.suspects.map(([start, end]) => [page.offsets.unit(start), page.offsets.unit(end)]);
  take(said);
  byId("text").scrollTop = 0;
  const first = shown().find((span) => span.state === "open") ?? shown()[0];
  choose(first?.key ?? null);
  showQueue();
}

export function take(said) {
  const unit = (point) => page.offsets.unit(point);
  state.spans = said.spans.map((span) => {
    const from = { ...span, start: unit(span.start), end: unit(span.end), points: [span.start, span.end] };
    from.key = span.place.join("-");
    from.group = GROUPS[span.label] ?? "number";
    from.said = describe(from);
    return from;
  });
  state.pieces = said.pieces.map(([start, end, text]) => ({ start: unit(start), end: unit(end), text }));
  state.notes[said.at] = said.listed;
  byId("undo").disabled = !said.undo;
}

// What is shown

export function shown() {
  const [label, source, now] = ["by-label", "by-source", "by-state"].map((id) => byId(id).value);
  return state.spans.filter((span) =>
    (!label || span.label === label) && (!source || span.detector === source) && (!now || span.state === now));
}

export function show() {
  page.show(state.spans, state.suspects, state.pieces, state.current);
  showList();
  showCurrent();
  showCounts();
}

/** The unknown words that no span covers now. */
export function freeSuspects() {
  const live = state.spans.filter((span) => span.state !== "dropped").sort(ORDERS.place);
  let at = 0;
  return state.suspects.filter(([start, end]) => {
    while (at < live.length && live[at].end <= start) at += 1;
    return at === live.length || live[at].start >= end;
  });
}

export function showCounts() {
  const done = state.notes.filter((note) => note.done).length;
  byId("progress").max = state.notes.length || 1;
  byId("progress").value = done;
  byId("counts").textContent = `${done} of ${state.notes.length} notes done · reviewer ${state.reviewer}`;
  const note = state.notes[state.at];
  if (!note) return;
  byId("note-head").textContent = `Note ${state.at + 1}: ${note.id}`;
  const open = state.spans.filter((span) => span.state === "open").length;
  const unknown = freeSuspects().length;
  byId("note-said").textContent = `${note.done ? "done · " : ""}${state.spans.length} found, ${open} open · ${unknown} unknown word${unknown === 1 ? "" : "s"}`;
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

const LISTED = 400; // of more spans those about the chosen one are listed
const rows = new Map(); // of the list: key -> [what it says, its element]

function showList() {
  fillFilter(byId("by-label"), state.spans, "label");
  fillFilter(byId("by-source"), state.spans, "detector");
  fillFilter(byId("by-state"), state.spans, "state", STATES);
  const spans = shown().sort(ORDERS[byId("by-order").value]);
  const from = Math.max(0, spans.findIndex((span) => span.key === state.current) - LISTED / 2);
  const items = spans.slice(from, from + LISTED).map((span) => {
    const says = JSON.stringify([span.said, span.start, span.end, span.key === state.current]);
    const old = rows.get(span.key);
    if (old && old[0] === says) return old[1];
    const made = spanItem(span, written(span), span.key === state.current, () => queueStep(() => choose(span.key)));
    rows.set(span.key, [says, made]);
    return made;
  });
  const list = byId("spans");
  if (items.length !== list.children.length || items.some((item, at) => item !== list.children[at])) {
    list.replaceChildren(...items);
  }
  list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  const [count, all] = [spans.length, state.spans.length];
  byId("spans-head").textContent = `Found (${count}${count < all ? ` of ${all}` : ""})`;
  byId("spans-part").textContent = items.length < count ? `${from + 1} to ${from + items.length} of ${count}` : "";
}

function showCurrent() {
  const span = currentSpan();
  const said = byId("current-said");
  if (!span) {
    said.textContent = state.spans.length ? "No span is chosen." : "Nothing was found in this note.";
    return;
  }
  const treated = state.pieces.find((piece) => piece.start <= span.start && span.end <= piece.end);
  const becomes = treated ? ` → ${treated.text ? short(treated.text, 60) : "nothing"}` : " stays";
  said.replaceChildren(chip(span), " ", element("b", "", short(written(span), 80)), becomes, element("br"), element("small", "", span.said));
}

// Going from span to span

export function choose(key, scroll = true) {
  state.current = key;
  show();
  const span = currentSpan();
  if (!span) return;
  if (scroll) page.revealSpan(span);
  const at = state.spans.indexOf(span) + 1;
  announce(`Span ${at} of ${state.spans.length}: ${written(span)}: ${span.said}`);
}

export function step(by) {
  getSelection().removeAllRanges();
  const spans = shown().sort(ORDERS.place);
  if (!spans.length) return announce("There is no span.");
  const at = spans.findIndex((span) => span.key === state.current);
  const from = currentSpan()?.start ?? 0;
  const next = at >= 0 ? at + by : by > 0 ? spans.findIndex((s) => s.start >= from) : spans.findLastIndex((s) => s.start < from);
  if (next < 0 || next >= spans.length) return announce(by > 0 ? "This is the last span." : "This is the first span.");
  choose(spans[next].key);
}
