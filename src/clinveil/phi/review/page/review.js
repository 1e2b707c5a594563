// The review page: actions of keys and buttons.
// The server stores every step on disk before the page shows it.

import { acceptAll, askLabel, done, keep, label, move, undo, verdict } from "./decide.js";
import { moveLine, moveMark, nextHit, select, suspect } from "./find.js";
import { useLabels } from "./labels.js";
import { DIGITS, keepFocus } from "./lists.js";
import { choose, openNote, show, step } from "./opened.js";
import { Refused, ask, enter } from "./server.js";
import { byId, page, queueStep, state } from "./state.js";

page.onChosen = (key) => queueStep(() => choose(key, false));

// Key -> name of the action, as in the buttons' `data-do`.
const KEYS = {
  j: "next-span", ArrowRight: "next-span", k: "previous-span", ArrowLeft: "previous-span",
  n: "next-note", p: "previous-note", w: "next-suspect", W: "previous-suspect",
  a: "accept", r: "reject", x: "reject", A: "accept-all", u: "undo", Enter: "done", l: "label", s: "select",
  "[": "start-out", "{": "start-in", "]": "end-out", "}": "end-in",
  ",": "start-word-out", "<": "start-word-in", ".": "end-word-out", ">": "end-word-in", "?": "help", "/": "search",
};

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
  // A span added by the reviewer is removed, because no detector found it.
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
  // The selection is known only after the preceding steps have finished.
  if (known && (event.key in KEYS || page.marked)) run(event, () => (page.marked && MARKED[event.key]) ? MARKED[event.key]() : DO[KEYS[event.key]]?.());
}

function run(event, action) {
  event.preventDefault();
  queueStep(action);
}

function addListeners() {
  document.addEventListener("keydown", onKey);
  document.querySelectorAll("[data-do]").forEach((button) => {
    button.addEventListener("mousedown", keepFocus);
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
  byId("trouble").textContent = "Stopped. All decisions are saved. You can close this page.";
  throw new Refused(byId("trouble").textContent);
}

async function begin() {
  await enter();
  const queue = await ask("queue");
  Object.assign(state, { notes: queue.notes, reviewer: queue.reviewer, blind: queue.blind });
  document.body.classList.toggle("blind", state.blind);
  if (state.blind) byId("notes-head").textContent = "Locations";
  useLabels(queue.labels);
  byId("digits").textContent = DIGITS.map((name, at) => `${(at + 1) % 10} ${name}`).join(", ");
  byId("notes-fold").open = matchMedia("(min-width: 60rem)").matches;
  if (!state.notes.length) throw new Refused("The queue is empty.");
  const first = state.notes.findIndex((note) => !note.done);
  await openNote(Math.max(0, first));
}

addListeners();
queueStep(begin);
