// Select words in the note, and search in all notes.

import { freeSuspects, openNote } from "./opened.js";
import { ask } from "./server.js";
import { announce, byId, currentSpan, page, state } from "./state.js";

export function select() {
  if (page.marked) return;
  const words = page.offsets.words;
  if (!words.length) return announce("This note has no words.");
  const from = currentSpan()?.end ?? 0;
  markWord(Math.min(page.offsets.wordAt(from), words.length - 1));
}

function markWord(at) {
  const words = page.offsets.words;
  if (at < 0 || at >= words.length) return;
  page.mark(...words[at]);
  announce(`Selected: ${page.text.slice(...words[at])}`);
}

export function moveMark(by) {
  const at = page.offsets.wordAt(page.marked[0]);
  markWord(at + by);
}

export function moveLine(by) {
  const [start] = page.marked;
  const lineStart = page.text.lastIndexOf("\n", start - 1) + 1;
  const next = by > 0 ? page.text.indexOf("\n", start) + 1 : page.text.lastIndexOf("\n", lineStart - 2) + 1;
  if ((by > 0 && !next) || (by < 0 && !lineStart)) return;
  markWord(Math.min(page.offsets.wordAt(next + start - lineStart), page.offsets.words.length - 1));
}

export function suspect(by) {
  const free = freeSuspects();
  if (!free.length) return announce("No unknown words left in this note.");
  const from = (page.marked ?? [currentSpan()?.start ?? -1])[0];
  const next = by > 0 ? free.find(([start]) => start > from) ?? free[0] : free.findLast(([start]) => start < from) ?? free.at(-1);
  page.mark(...next);
  announce(`Unknown word ${free.indexOf(next) + 1} of ${free.length}: ${page.text.slice(...next)}`);
}

async function search(words) {
  state.hits = words ? await ask("search", { words }) : null;
  state.hit = -1;
  state.query = words;
  byId("hits").textContent = words ? (state.hits.hits.length ? "" : "none") : "";
}

export async function nextHit(by) {
  const words = byId("words").value;
  if (words !== state.query) await search(words);
  const hits = state.hits?.hits ?? [];
  if (!hits.length) return;
  state.hit = (state.hit + by + hits.length) % hits.length;
  byId("hits").textContent = `${state.hit + 1} of ${hits.length}${state.hits.all ? "" : " or more"}`;
  const [at, start, end] = hits[state.hit];
  if (at !== state.at) await openNote(at);
  page.mark(page.offsets.unit(start), page.offsets.unit(end));
  announce(`Hit ${state.hit + 1} of ${hits.length}, in note ${at + 1}`);
}
