// The note as rows, each with the original and the de-identified text. Unchanged rows are not rebuilt.

import { Offsets } from "./offsets.js";

const LARGE = 200_000; // UTF-16 units; in larger notes a row contains several lines
const ROW = 2_000;
const MAX_ROW = 8_000; // longer lines are split, for display only
// Invisible characters and direction marks are shown as a dot with their code point. Joiners are kept in scripts and
// emoji that need them.
const INVISIBLE = /[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\u0000-\u0008\u000b\u000e-\u001f\u007f]|(?<=[\p{Script=Latin}\p{N}\s])[\u200c\u200d]/gu;

export class NotePage {
  /** `box`: the container of the rows. `onChosen` is called with the key of a clicked span. */
  constructor(box) {
    this.box = box;
    this.onChosen = () => {};
    this.starts = new WeakMap(); // original text node -> offset of its first unit
    // Spans are rendered only for rows near the viewport; other rows contain plain text.
    this.watch = new IntersectionObserver((entries) => entries.forEach((entry) => this.onVisible(entry)), { root: box, rootMargin: "100% 0px" });
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

  onVisible({ target, isIntersecting }) {
    const at = this.byElement.get(target);
    if (at === undefined) return;
    this.near[isIntersecting ? "add" : "delete"](at);
    if (isIntersecting) this.fill(at);
  }

  /** Show spans, suspects and replacements, with offsets in units; changed rows are rebuilt. */
  show(spans, suspects, pieces, current) {
    const live = spans.filter((span) => span.state !== "dropped");
    const dropped = spans.filter((span) => span.state === "dropped");
    const items = [...live, ...disjoint(dropped, live)];
    items.push(...disjoint(suspects.map(([start, end]) => ({ start, end, state: "suspect" })), items));
    items.sort((a, b) => a.start - b.start);
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
    const rows = [];
    for (const item of items) {
      for (let at = this.rowAt(item.start); at < this.rows.length && this.rows[at].start < item.end; at += 1) {
        (rows[at] ??= []).push(item);
      }
    }
    return rows;
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
        shown.setAttribute("aria-label", mark.description);
        shown.title = mark.description;
        if (mark.key === current) shown.setAttribute("aria-current", "true");
      } else {
        if (!document.body.classList.contains("blind")) shown.title = "capitalised word that is in no word list";
      }
      shown.append(...this.plain(start, end));
      yield shown;
      at = end;
    }
    yield* this.plain(at, row.end);
  }

  *plain(start, end) {
    for (const [from, to, invisible] of pieces(this.text, start, end)) {
      const node = document.createTextNode(this.text.slice(from, to));
      this.starts.set(node, from);
      if (invisible) {
        const shown = element("span", "invisible");
        shown.title = invisible;
        shown.append(node);
        yield shown;
      } else {
        yield node;
      }
    }
  }

  /** The selection in the original text, [start, end) in units, or null. */
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
    const range = document.createRange(); // boundary between elements: use the next text node
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

  /** Select a range, in units. */
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

  /** Scroll a span into view. */
  revealSpan({ key, start }) {
    const at = this.rowAt(start);
    this.fill(at);
    const mark = [...this.rows[at].written.querySelectorAll("mark[data-key]")].find((element) => element.dataset.key === key);
    this.reveal(mark ?? this.rows[at].row);
  }
}

/** Split a text into rows: single lines, or several lines in large texts. */
function cut(text) {
  const least = text.length > LARGE ? ROW : 0;
  const rows = [];
  for (let start = 0; start < text.length; ) {
    const line = text.indexOf("\n", start + least) + 1 || text.length;
    const end = line - start > MAX_ROW ? wholeCharacter(text, start + MAX_ROW) : line;
    rows.push([start, end]);
    start = end;
  }
  return rows.length ? rows : [[0, 0]];
}

/** Return the nearest offset that does not split a surrogate pair. */
function wholeCharacter(text, unit) {
  return text.codePointAt(unit - 1) > 0xffff ? unit + 1 : unit;
}

/** Return the `items` that do not overlap any of the `others`. */
function disjoint(items, others) {
  const taken = [...others].sort((a, b) => a.start - b.start);
  let at = 0;
  return [...items].sort((a, b) => a.start - b.start).filter((item) => {
    while (at < taken.length && taken[at].end <= item.start) at += 1;
    return at === taken.length || taken[at].start >= item.end;
  });
}

function* pieces(text, start, end) {
  let at = start;
  for (const match of text.slice(start, end).matchAll(INVISIBLE)) {
    const unit = start + match.index;
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
  const created = document.createElement(name);
  if (kind) created.className = kind;
  if (text) created.textContent = text;
  return created;
}
