// The label dialog: type to filter, choose with the arrow keys or the mouse.

import { DIGITS, GROUPS, chip } from "./lists.js";
import { element } from "./note.js";

const dialog = document.getElementById("labels");
const words = document.getElementById("labels-words");
const list = document.getElementById("labels-list");
let labels = [];

/** Set the labels; those with a digit shortcut come first. */
export function useLabels(given) {
  labels = [...given].sort((a, b) => rank(a.label) - rank(b.label));
  words.addEventListener("input", show);
  dialog.addEventListener("keydown", onKey);
}

const rank = (name) => (DIGITS.includes(name) ? DIGITS.indexOf(name) : DIGITS.length);

/** Ask for a label and pass it to `then`, unless the dialog is cancelled. */
export function pickLabel(then) {
  words.value = "";
  show();
  dialog.returnValue = "";
  dialog.onclose = () => dialog.returnValue && then(dialog.returnValue);
  dialog.showModal();
  words.focus();
}

function show() {
  const query = words.value.trim().toLowerCase();
  const fits = labels.filter(({ label, means }) => `${label} ${means}`.toLowerCase().includes(query));
  list.replaceChildren(...fits.map(option));
}

function option({ label, means }, at) {
  const item = element("li");
  item.setAttribute("role", "none");
  const button = element("button");
  button.type = "button";
  button.setAttribute("role", "option");
  button.setAttribute("aria-selected", String(at === 0));
  const digit = DIGITS.indexOf(label);
  button.append(chip({ label, group: GROUPS[label] ?? "number" }), ` ${means}`);
  if (digit >= 0) button.append(" ", element("kbd", "", String((digit + 1) % 10)));
  button.addEventListener("click", () => dialog.close(label));
  item.append(button);
  return item;
}

function onKey(event) {
  const options = [...list.querySelectorAll("button")];
  const at = options.indexOf(document.activeElement);
  if (event.key === "Enter" && at < 0 && options.length) {
    event.preventDefault();
    options[0].click();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    options[Math.max(0, Math.min(options.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)))]?.focus();
  }
}
