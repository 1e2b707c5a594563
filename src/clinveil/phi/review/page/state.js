// What the page knows: the notes, the spans of the one that is open, and the steps that wait for the server.

import { NotePage } from "./note.js";
import { Refused } from "./server.js";

export const byId = (id) => document.getElementById(id);
export const state = { notes: [], at: 0, spans: [], suspects: [], pieces: [], current: null, hits: null, hit: -1 };
export const page = new NotePage(byId("text"));

export const written = (span) => page.text.slice(span.start, span.end).replace(/\s+/g, " ");
export const currentSpan = () => state.spans.find((span) => span.key === state.current) ?? null;

// Steps, one after another: a key that is pressed while the server works waits its turn.

let line = Promise.resolve();
let waiting = 0;

export function queueStep(step) {
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

export function announce(words) {
  byId("live").textContent = words;
}
