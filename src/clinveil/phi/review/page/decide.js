// Decisions, borders and labels: each is a step that the server writes before it is shown.

import { ORDERS } from "./lists.js";
import { pickLabel } from "./labels.js";
import { choose, openNote, show, showCounts, shown, take } from "./opened.js";
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

function saved(words) {
  byId("saved").textContent = words;
  byId("saved").dataset.is = words;
}

export async function verdict(make) {
  const span = currentSpan();
  if (!span) return announce("No span is chosen.");
  await decide([make(span)]);
  const later = shown().sort(ORDERS.place).filter((s) => s.state === "open");
  const next = later.find((s) => s.start > span.start) ?? later[0];
  choose(next ? next.key : span.key);
  if (!next) announce("No span is open: Enter goes to the next note.");
}

export async function acceptAll() {
  const open = state.spans.filter((span) => span.state === "open");
  if (!open.length) return announce("No span is open.");
  await decide(open.map((span) => keep(span, span.start, span.end, span.label)));
  show();
  announce(`${open.length} accepted.`);
}

export async function undo() {
  saved("saving …");
  const before = new Map(state.spans.map((span) => [span.key, span.said + span.points]));
  take(await ask("undo", { at: state.at }));
  saved("saved");
  const changed = state.spans.find((span) => before.get(span.key) !== span.said + span.points);
  choose(changed?.key ?? currentSpan()?.key ?? null);
  announce(`Taken back. ${byId("live").textContent}`);
}

export async function done() {
  await decide([], true);
  showCounts();
  const waiting = (at) => at >= 0 && !state.notes[at].done;
  const order = state.notes.map((_, i) => (state.at + 1 + i) % state.notes.length);
  const next = order.find(waiting);
  if (next === undefined) {
    show();
    return announce("All notes are done.");
  }
  await openNote(next);
}

// Borders, labels, new spans: of what is marked, or of the chosen span

export async function move(start, end) {
  const marked = page.marked;
  const span = currentSpan();
  const from = marked ?? (span ? [span.start, span.end] : null);
  if (!from) return announce("No span is chosen.");
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
  if (!span) return announce("No span is chosen.");
  await decide([keep(span, span.start, span.end, name)]);
  choose(span.key);
}

/** A new span; live ones that it overlaps become part of it. */
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
  if (!marked && !currentSpan()) return announce("Choose a span or mark a word first.");
  pickLabel((name) => queueStep(() => {
    if (marked) page.mark(...marked);
    return label(name);
  }));
}
