// The note on the page: rows of lines, each as written and as treated. Rows that did not change are left alone.

import { Offsets } from "./offsets.js";

const LARGE = 200_000; // units; of larger notes a row takes several lines
const ROW = 2_000;
const LONGEST = 8_000; // a line without an end is cut here, for the eyes only
// What nobody sees and what turns the order of letters round: shown as a dot with its number. The joiners are left
// alone in scripts and emoji that need them.
const UNSEEN = /[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\u0000-\u0008\u000b\u000e-\u001f\u007f]|(?<=[\p{Script=Latin}\p{N}\s])[\u200c\u200d]/gu;

export class NotePage {
  /** `box`: where the rows go. `onChosen` is called with the key of a span that was clicked. */
  constructor(box) {
    this.box = box;
    this.onChosen = () => {};
    this.starts = new WeakMap(); // of each text node as written, the unit at which it begins
    // Marks are made for the rows that are near what can be seen; the others hold their text until then.
    this.watch = new IntersectionObserver((seen) => seen.forEach((one) => this.seen(one)), { root: box, rootMargin: "100% 0px" });
    box.addEventListener("click", (event) => {
      const mark = event.target.closest("mark[data-key]");
      if (mark && getSelection().isCollapsed) this.onChosen(mark.dataset.key);
    });
  }

  /** Show another note. */
  open(text) {
    this.text = text;
    this.marks = null;
    this.offsets = new Offsets(text);
    this.watch.disconnect();
    this.near = new Set();
    this.rows = cut(text).map(([start, end]) => {
      const row = element("div", "row");
      const written = element("div", "written");
      const treated = element("div", "treated");
      written.append(...this.plain(start, end));
      row.append(written, treated);
      return { start, end, row, written, treated, key: "" };
    });
    this.byElement = new Map(this.rows.map((row, at) => [row.row, at]));
    this.box.replaceChildren(...this.rows.map((row) => row.row));
    this.rows.forEach((row) => this.watch.observe(row.row));
  }

  seen({ target, isIntersecting }) {
    const at = this.byElement.get(target);
    if (at === undefined) return;
    this.near[isIntersecting ? "add" : "delete"](at);
    if (isIntersecting) this.fill(at);
  }

  /** Show spans, suspects and treated pieces, all with their units; rows that have other ones now are made anew. */
  show(spans, suspects, pieces, current) {
    const live = spans.filter((span) => span.state !== "dropped");
    const dropped = spans.filter((span) => span.state === "dropped");
    const items = [...live, ...apart(dropped, live)];
    items.push(...apart(suspects.map(([start, end]) => ({ start, end, state: "suspect" })), items));
    items.sort((one, other) => one.start - other.start);
    Object.assign(this, { marks: this.byRow(items), news: this.byRow(pieces), current });
    this.near.forEach((at) => this.fill(at));
  }

  fill(at) {
    if (!this.marks) return;
    const [row, marks, news] = [this.rows[at], this.marks[at] ?? [], this.news[at] ?? []];
    const key = JSON.stringify([marks.map((m) => [m.start, m.end, m.label, m.state, m.key === this.current]), news]);
    if (key === row.key) return;
    row.key = key;
    row.written.replaceChildren(...this.written(row, marks, this.current));
    row.treated.replaceChildren(...treated(this.text, row, news));
  }

  byRow(items) {
    const found = [];
    for (const item of items) {
      for (let at = this.rowAt(item.start); at < this.rows.length && this.rows[at].start < item.end; at += 1) {
        (found[at] ??= []).push(item);
      }
    }
    return found;
  }

  rowAt(unit) {
    let low = 0;
    let high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.rows[middle].start <= unit) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  *written(row, marks, current) {
    let at = row.start;
    for (const mark of marks) {
      const start = Math.max(mark.start, row.start);
      const end = Math.min(mark.end, row.end);
      yield* this.plain(at, start);
      const shown = element("mark", mark.state);
      if (mark.key !== undefined) {
        shown.dataset.key = mark.key;
        shown.dataset.group = mark.group;
        if (end === mark.end) shown.dataset.label = mark.label;
        shown.setAttribute("aria-label", mark.said);
        shown.title = mark.said;
        if (mark.key === current) shown.setAttribute("aria-current", "true");
      } else {
        shown.title = "a word with a capital that stands in no list of words";
      }
      shown.append(...this.plain(start, end));
      yield shown;
      at = end;
    }
    yield* this.plain(at, row.end);
  }

  *plain(start, end) {
    for (const [from, to, unseen] of pieces(this.text, start, end)) {
      const node = document.createTextNode(this.text.slice(from, to));
      this.starts.set(node, from);
      if (unseen) {
        const shown = element("span", "unseen");
        shown.title = unseen;
        shown.append(node);
        yield shown;
      } else {
        yield node;
      }
    }
  }

  /** What is marked in the note as written, [start, end) in units; null where nothing is. */
  get marked() {
    const chosen = getSelection();
    if (!chosen.rangeCount || chosen.isCollapsed) return null;
    const range = chosen.getRangeAt(0);
    if (!this.box.contains(range.commonAncestorContainer)) return null;
    const start = this.unitOf(range.startContainer, range.startOffset);
    const end = this.unitOf(range.endContainer, range.endOffset);
    return start < end ? [start, end] : null;
  }

  unitOf(node, offset) {
    if (this.starts.has(node)) return this.starts.get(node) + offset;
    const range = document.createRange(); // the border stands between elements: the next text after it counts
    range.setStart(node, offset);
    const walker = document.createTreeWalker(this.box, NodeFilter.SHOW_TEXT);
    let last = 0;
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
      if (!this.starts.has(text)) continue;
      if (range.comparePoint(text, 0) >= 0) return this.starts.get(text);
      last = this.starts.get(text) + text.length;
    }
    return last;
  }

  /** Mark a place, in units, as the mouse would. */
  mark(start, end) {
    const [from, fromOffset] = this.nodeAt(start, false);
    const [to, toOffset] = this.nodeAt(end, true);
    getSelection().setBaseAndExtent(from, fromOffset, to, toOffset);
    this.reveal(from.parentElement);
  }

  nodeAt(unit, asEnd) {
    const at = this.rowAt(asEnd ? unit - 1 : unit);
    const row = this.rows[at];
    this.fill(at);
    const walker = document.createTreeWalker(row.written, NodeFilter.SHOW_TEXT);
    let last = null;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const offset = unit - this.starts.get(node);
      if (offset < node.length || (asEnd && offset === node.length)) return [node, offset];
      last = node;
    }
    return [last, last.length];
  }

  reveal(shown) {
    shown?.scrollIntoView({ block: "center", inline: "nearest" });
  }

  /** Bring a span into view. */
  revealSpan({ key, start }) {
    const at = this.rowAt(start);
    this.fill(at);
    const mark = [...this.rows[at].written.querySelectorAll("mark[data-key]")].find((one) => one.dataset.key === key);
    this.reveal(mark ?? this.rows[at].row);
  }
}

/** Rows of a text: its lines; of large texts several together. */
function cut(text) {
  const least = text.length > LARGE ? ROW : 0;
  const rows = [];
  for (let start = 0; start < text.length; ) {
    const line = text.indexOf("\n", start + least) + 1 || text.length;
    const end = line - start > LONGEST ? whole(text, start + LONGEST) : line;
    rows.push([start, end]);
    start = end;
  }
  return rows.length ? rows : [[0, 0]];
}

/** A place to cut that parts no surrogate pair. */
function whole(text, unit) {
  return text.codePointAt(unit - 1) > 0xffff ? unit + 1 : unit;
}

/** Those of `items` that overlap none of the `others`. */
function apart(items, others) {
  const taken = [...others].sort((one, other) => one.start - other.start);
  let at = 0;
  return [...items].sort((one, other) => one.start - other.start).filter((item) => {
    while (at < taken.length && taken[at].end <= item.start) at += 1;
    return at === taken.length || taken[at].start >= item.end;
  });
}

function* pieces(text, start, end) {
  let at = start;
  for (const found of text.slice(start, end).matchAll(UNSEEN)) {
    const unit = start + found.index;
    if (at < unit) yield [at, unit, ""];
    yield [unit, unit + 1, `U+${text.charCodeAt(unit).toString(16).toUpperCase().padStart(4, "0")}`];
    at = unit + 1;
  }
  if (at < end) yield [at, end, ""];
}

function* treated(text, row, news) {
  let at = row.start;
  for (const piece of news) {
    if (piece.start > at) yield text.slice(at, piece.start);
    if (piece.start >= row.start) {
      const shown = element("ins", piece.text ? "new" : "gone");
      shown.textContent = piece.text;
      yield shown;
    }
    at = Math.min(piece.end, row.end);
  }
  yield text.slice(at, row.end);
}

export function element(name, kind, text = "") {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text) made.textContent = text;
  return made;
}
