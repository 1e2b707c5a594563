// Decisions, boundaries and labels. The server stores each step before the page shows it.

import { ORDERS } from "./lists.js";
import { pickLabel } from "./labels.js";
import { choose, openNote, show, shown, take } from "./opened.js";
import { ask } from "./server.js";
import { announce, byId, currentSpan, page, queueStep, state } from "./state.js";

export const keep = (span, start, end, label) => ({
  place: span.place, verdict: "keep", span: [page.offsets.point(start), page.offsets.point(end), label],
});

async function decide(verdicts, done) {
  const body = { at: state.at, verdicts };
  saved("saving …");
  try {
    take(await ask("act", done === undefined ? body : { ...body, done }));
  } catch (error) {
    saved("not saved");
    throw error;
  }
  saved("saved");
}

function saved(status) {
  byId("saved").textContent = status;
  byId("saved").dataset.is = status;
}

export async function verdict(make) {
  const span = currentSpan();
  if (!span) return announce("No span selected.");
  const judged = state.blind && !span.added;
  await decide([make(span)], judged || undefined);
  if (judged) return openWaiting();
  const later = shown().sort(ORDERS.place).filter((s) => s.state === "open");
  const next = later.find((s) => s.start > span.start) ?? later[0];
  choose(next ? next.key : span.key);
  if (!next) announce("No open span. Press Enter for the next note.");
}

export async function acceptAll() {
  const open = state.spans.filter((span) => span.state === "open");
  if (!open.length) return announce("No open span.");
  await decide(open.map((span) => keep(span, span.start, span.end, span.label)));
  show();
  announce(`${open.length} accepted.`);
}

export async function undo() {
  saved("saving …");
  const before = new Map(state.spans.map((span) => [span.key, span.description + span.points]));
  take(await ask("undo", { at: state.at }));
  saved("saved");
  const changed = state.spans.find((span) => before.get(span.key) !== span.description + span.points);
  choose(changed?.key ?? currentSpan()?.key ?? null);
  announce(`Undone. ${byId("live").textContent}`);
}

export async function done() {
  await decide([], true);
  await openWaiting();
}

async function openWaiting() {
  show();
  const waiting = (at) => at >= 0 && !state.notes[at].done;
  const order = state.notes.map((_, i) => (state.at + 1 + i) % state.notes.length);
  const next = order.find(waiting);
  if (next === undefined) return announce("All notes are done.");
  await openNote(next);
}

// Boundaries, labels and new spans, for the selected text or the selected span

export async function move(start, end) {
  const marked = page.marked;
  const span = currentSpan();
  const from = marked ?? (span ? [span.start, span.end] : null);
  if (!from) return announce("No span selected.");
  const to = [start(from[0]), end(from[1])];
  if (to[0] >= to[1] || (to[0] === from[0] && to[1] === from[1])) return;
  if (marked) return page.mark(...to);
  await decide([keep(span, ...to, span.label)]);
  choose(span.key);
}

export async function label(name) {
  const marked = page.marked;
  if (marked) return add(...marked, name);
  const span = currentSpan();
  if (!span) return announce("No span selected.");
  await decide([keep(span, span.start, span.end, name)]);
  choose(span.key);
}

/** Add a span; active spans that overlap it are merged into it. */
async function add(start, end, name) {
  const over = state.spans.filter((span) => span.state !== "dropped" && span.start < end && start < span.end);
  const place = [page.offsets.point(start), page.offsets.point(end)];
  const [first, ...rest] = over;
  const verdicts = [keep(first ?? { place }, start, end, name)];
  for (const span of rest) verdicts.push({ place: span.place, verdict: span.added ? "open" : "drop" });
  await decide(verdicts);
  getSelection().removeAllRanges();
  choose((first?.place ?? place).join("-"));
}

export function askLabel() {
  const marked = page.marked;
  if (!marked && !currentSpan()) return announce("Select a span or a word first.");
  if (state.blind) return marked && add(...marked, "ID"); // labels of the sample are not used
  pickLabel((name) => queueStep(() => {
    if (marked) page.mark(...marked);
    return label(name);
  }));
}
