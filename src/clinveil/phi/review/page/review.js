// The review page: what is shown, and what each key and button does.
// Every step goes to the server first, and is shown when the server has it on disk.

import { NotePage, element } from "./note.js";
import { DIGITS, GROUPS, ORDERS, STATES, chip, describe, fillFilter, noteItem, short, spanItem, stayThere } from "./lists.js";
import { KEYS } from "./keys.js";
import { pickLabel, useLabels } from "./labels.js";
import { Refused, ask, enter } from "./server.js";

const byId = (id) => document.getElementById(id);
const state = { notes: [], at: 0, spans: [], suspects: [], pieces: [], current: null, hits: null, hit: -1 };
const page = new NotePage(byId("text"), (key) => queueStep(() => choose(key, false)));

// ---- Steps, one after another: a key that is pressed while the server works waits its turn.

let line = Promise.resolve();
let waiting = 0;

function queueStep(step) {
  busy(1);
  line = line.then(step).then(calm, trouble).finally(() => busy(-1));
  return line;
}

function busy(by) {
  waiting += by;
  document.querySelector("main").ariaBusy = String(waiting > 0);
}

function calm() {
  byId("trouble").hidden = true;
}

function trouble(error) {
  const shown = byId("trouble");
  shown.textContent = error instanceof Refused ? error.message : "The page failed. Load it again; what was saved is saved.";
  shown.hidden = false;
  if (!(error instanceof Refused)) throw error;
}

function announce(words) {
  byId("live").textContent = words;
}

// ---- Notes

async function openNote(at) {
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

function take(said) {
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

const written = (span) => page.text.slice(span.start, span.end).replace(/\s+/g, " ");

// ---- What is shown

function shown() {
  const [label, source, now] = ["by-label", "by-source", "by-state"].map((id) => byId(id).value);
  return state.spans.filter((span) =>
    (!label || span.label === label) && (!source || span.detector === source) && (!now || span.state === now));
}

function show() {
  page.show(state.spans, state.suspects, state.pieces, state.current);
  showList();
  showCurrent();
  showCounts();
}

function showCounts() {
  const done = state.notes.filter((note) => note.done).length;
  byId("progress").max = state.notes.length || 1;
  byId("progress").value = done;
  byId("counts").textContent = `${done} of ${state.notes.length} notes done · reviewer ${state.reviewer}`;
  const note = state.notes[state.at];
  if (!note) return;
  byId("note-head").textContent = `Note ${state.at + 1}: ${note.id}`;
  const open = state.spans.filter((span) => span.state === "open").length;
  byId("note-said").textContent = `${note.done ? "done · " : ""}${state.spans.length} found, ${open} open · ${state.suspects.length} unknown word${state.suspects.length === 1 ? "" : "s"}`;
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

const currentSpan = () => state.spans.find((span) => span.key === state.current) ?? null;

// ---- Going from span to span

function choose(key, scroll = true) {
  state.current = key;
  show();
  const span = currentSpan();
  if (!span) return;
  if (scroll) page.revealSpan(span);
  const at = state.spans.indexOf(span) + 1;
  announce(`Span ${at} of ${state.spans.length}: ${written(span)}: ${span.said}`);
}

function step(by) {
  getSelection().removeAllRanges();
  const spans = shown().sort(ORDERS.place);
  if (!spans.length) return announce("There is no span.");
  const at = spans.findIndex((span) => span.key === state.current);
  const from = currentSpan()?.start ?? 0;
  const next = at >= 0 ? at + by : by > 0 ? spans.findIndex((s) => s.start >= from) : spans.findLastIndex((s) => s.start < from);
  if (next < 0 || next >= spans.length) return announce(by > 0 ? "This is the last span." : "This is the first span.");
  choose(spans[next].key);
}

// ---- Decisions

const keep = (span, start, end, label) => ({
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

async function verdict(make) {
  const span = currentSpan();
  if (!span) return announce("No span is chosen.");
  await decide([make(span)]);
  const later = shown().sort(ORDERS.place).filter((s) => s.state === "open");
  const next = later.find((s) => s.start > span.start) ?? later[0];
  choose(next ? next.key : span.key);
  if (!next) announce("No span is open: Enter goes to the next note.");
}

async function acceptAll() {
  const open = state.spans.filter((span) => span.state === "open");
  if (!open.length) return announce("No span is open.");
  await decide(open.map((span) => keep(span, span.start, span.end, span.label)));
  show();
  announce(`${open.length} accepted.`);
}

async function undo() {
  saved("saving …");
  const before = new Map(state.spans.map((span) => [span.key, span.said + span.points]));
  take(await ask("undo", { at: state.at }));
  saved("saved");
  const changed = state.spans.find((span) => before.get(span.key) !== span.said + span.points);
  choose(changed?.key ?? currentSpan()?.key ?? null);
  announce(`Taken back. ${byId("live").textContent}`);
}

async function done() {
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

// ---- Borders, labels, new spans: of what is marked, or of the chosen span

async function move(start, end) {
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

async function label(name) {
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

function select() {
  if (page.marked) return;
  const words = page.offsets.words;
  if (!words.length) return announce("There is no word in this note.");
  const from = currentSpan()?.end ?? 0;
  markWord(Math.min(page.offsets.wordAt(from), words.length - 1));
}

function markWord(at) {
  const words = page.offsets.words;
  if (at < 0 || at >= words.length) return;
  page.mark(...words[at]);
  announce(`Marked: ${page.text.slice(...words[at])}`);
}

function moveMark(by) {
  const at = page.offsets.wordAt(page.marked[0]);
  markWord(at + by);
}

function moveLine(by) {
  const [start] = page.marked;
  const lineStart = page.text.lastIndexOf("\n", start - 1) + 1;
  const next = by > 0 ? page.text.indexOf("\n", start) + 1 : page.text.lastIndexOf("\n", lineStart - 2) + 1;
  if ((by > 0 && !next) || (by < 0 && !lineStart)) return;
  markWord(Math.min(page.offsets.wordAt(next + start - lineStart), page.offsets.words.length - 1));
}

function suspect(by) {
  const free = state.suspects.filter(([start, end]) => !state.spans.some((s) => s.state !== "dropped" && s.start < end && start < s.end));
  if (!free.length) return announce("No unknown word is left in this note.");
  const from = (page.marked ?? [currentSpan()?.start ?? -1])[0];
  const next = by > 0 ? free.find(([start]) => start > from) ?? free[0] : free.findLast(([start]) => start < from) ?? free.at(-1);
  page.mark(...next);
  announce(`Unknown word ${free.indexOf(next) + 1} of ${free.length}: ${page.text.slice(...next)}`);
}

function askLabel() {
  const marked = page.marked;
  if (!marked && !currentSpan()) return announce("Choose a span or mark a word first.");
  pickLabel((name) => queueStep(() => {
    if (marked) page.mark(...marked);
    return label(name);
  }));
}

// ---- Search

async function search(words) {
  state.hits = words ? await ask("search", { words }) : null;
  state.hit = -1;
  state.sought = words;
  byId("hits").textContent = words ? (state.hits.hits.length ? "" : "none") : "";
}

async function nextHit(by) {
  const words = byId("words").value;
  if (words !== state.sought) await search(words);
  const hits = state.hits?.hits ?? [];
  if (!hits.length) return;
  state.hit = (state.hit + by + hits.length) % hits.length;
  byId("hits").textContent = `${state.hit + 1} of ${hits.length}${state.hits.all ? "" : " or more"}`;
  const [at, start, end] = hits[state.hit];
  if (at !== state.at) await openNote(at);
  page.mark(page.offsets.unit(start), page.offsets.unit(end));
  announce(`Hit ${state.hit + 1} of ${hits.length}, in note ${at + 1}`);
}

// ---- Keys and buttons

const character = (by) => (unit) => page.offsets.character(unit, by);
const stay = (unit) => unit;
const DO = {
  "next-span": () => step(1),
  "previous-span": () => step(-1),
  "next-note": () => openNote(state.at + 1),
  "previous-note": () => openNote(state.at - 1),
  "next-suspect": () => suspect(1),
  "previous-suspect": () => suspect(-1),
  accept: () => verdict((span) => keep(span, span.start, span.end, span.label)),
  // What the reviewer added is taken back; nobody else found it.
  reject: () => verdict((span) => ({ place: span.place, verdict: span.added ? "open" : "drop" })),
  "accept-all": acceptAll,
  undo,
  done,
  label: askLabel,
  select,
  "start-out": () => move(character(-1), stay),
  "start-in": () => move(character(1), stay),
  "end-out": () => move(stay, character(1)),
  "end-in": () => move(stay, character(-1)),
  "start-word-out": () => move((unit) => page.offsets.wordStart(unit, -1), stay),
  "start-word-in": () => move((unit) => page.offsets.wordStart(unit, 1), stay),
  "end-word-out": () => move(stay, (unit) => page.offsets.wordEnd(unit, 1)),
  "end-word-in": () => move(stay, (unit) => page.offsets.wordEnd(unit, -1)),
  help: () => byId("help").showModal(),
  search: () => { byId("words").focus(); byId("words").select(); },
};
const MARKED = {
  ArrowLeft: () => moveMark(-1), ArrowRight: () => moveMark(1), ArrowUp: () => moveLine(-1), ArrowDown: () => moveLine(1),
  Enter: askLabel, l: askLabel, Escape: () => getSelection().removeAllRanges(),
};

function onKey(event) {
  if (document.querySelector("dialog[open]") || event.altKey || event.metaKey) return;
  if (event.ctrlKey) {
    if (event.key === "z" && !event.target.closest("input")) run(event, undo);
    return;
  }
  const control = event.target.closest("button, a, summary, select, input");
  if (control?.matches("input, select")) {
    if (event.key === "Escape") control.blur();
    return;
  }
  if (control && (event.key === "Enter" || event.key === " ")) return;
  if (!byId("keys-on").checked) return;
  if (/^[0-9]$/.test(event.key)) return run(event, () => label(DIGITS[(Number(event.key) + 9) % 10]));
  const known = event.key in KEYS || event.key in MARKED;
  // What is marked is known only when the steps before this one are through.
  if (known && (event.key in KEYS || page.marked)) run(event, () => (page.marked && MARKED[event.key]) ? MARKED[event.key]() : DO[KEYS[event.key]]?.());
}

function run(event, does) {
  event.preventDefault();
  queueStep(does);
}

function listen() {
  document.addEventListener("keydown", onKey);
  document.querySelectorAll("[data-do]").forEach((button) => {
    button.addEventListener("mousedown", stayThere);
    button.addEventListener("click", () => queueStep(DO[button.dataset.do]));
  });
  for (const id of ["by-label", "by-source", "by-state", "by-order"]) byId(id).addEventListener("change", show);
  byId("help-open").addEventListener("click", DO.help);
  byId("help-close").addEventListener("click", () => byId("help").close());
  byId("help").addEventListener("keydown", (event) => { if (event.key === "?") byId("help").close(); });
  byId("stop").addEventListener("click", () => queueStep(stop));
  byId("search").addEventListener("submit", (event) => { event.preventDefault(); queueStep(() => nextHit(1)); });
  byId("words").addEventListener("keydown", (event) => {
    if (event.key === "Enter") run(event, () => nextHit(event.shiftKey ? -1 : 1));
  });
}

async function stop() {
  await ask("stop");
  document.body.classList.add("stopped");
  byId("trouble").textContent = "Stopped. All decisions are saved; this page can be closed.";
  throw new Refused(byId("trouble").textContent);
}

async function begin() {
  await enter();
  const said = await ask("queue");
  Object.assign(state, { notes: said.notes, reviewer: said.reviewer });
  useLabels(said.labels);
  byId("digits").textContent = DIGITS.map((name, at) => `${(at + 1) % 10} ${name}`).join(", ");
  byId("notes-fold").open = matchMedia("(min-width: 60rem)").matches;
  if (!state.notes.length) throw new Refused("There is no note in the queue.");
  const first = state.notes.findIndex((note) => !note.done);
  await openNote(Math.max(0, first));
}

listen();
queueStep(begin);
