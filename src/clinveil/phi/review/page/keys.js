// Keyboard shortcuts: key -> name of the action, as in the buttons' `data-do`. `review.js` implements the actions.

export const KEYS = {
  j: "next-span", ArrowRight: "next-span", k: "previous-span", ArrowLeft: "previous-span",
  n: "next-note", p: "previous-note", w: "next-suspect", W: "previous-suspect",
  a: "accept", r: "reject", x: "reject", A: "accept-all", u: "undo", Enter: "done", l: "label", s: "select",
  "[": "start-out", "{": "start-in", "]": "end-out", "}": "end-in",
  ",": "start-word-out", "<": "start-word-in", ".": "end-word-out", ">": "end-word-in", "?": "help", "/": "search",
};
