// State of the page: the notes, the spans of the current note, and the queue of steps.

import { NotePage } from "./note.js";
import { Refused } from "./server.js";

export const byId = (id) => document.getElementById(id);
// blind: the notes are sampled locations, to be judged without seeing what was detected
export const state = { blind: false, notes: [], at: 0, spans: [], suspects: [], pieces: [], current: null, hits: null, hit: -1 };
export const page = new NotePage(byId("text"));

export const written = (span) => page.text.slice(span.start, span.end).replace(/\s+/g, " ");
export const currentSpan = () => state.spans.find((span) => span.key === state.current) ?? null;

// Steps run one after another, so keys pressed during a request are processed in order.

let line = Promise.resolve();
let waiting = 0;

export function queueStep(step) {
  busy(1);
  line = line.then(step).then(clearError, showError).finally(() => busy(-1));
  return line;
}

function busy(by) {
  waiting += by;
  document.querySelector("main").ariaBusy = String(waiting > 0);
}

function clearError() {
  byId("trouble").hidden = true;
}

function showError(error) {
  const shown = byId("trouble");
  shown.textContent = error instanceof Refused ? error.message : "Unexpected error. Reload the page; all saved steps are stored.";
  shown.hidden = false;
  if (!(error instanceof Refused)) throw error;
}

export function announce(words) {
  byId("live").textContent = words;
}
