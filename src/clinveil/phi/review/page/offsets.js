// Convert between code points (server) and UTF-16 units (browser) for one note.

const WIDE = /[\ud800-\udfff]/;
const WORD = /[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*/gu;
const NEAR = 64; // units; an upper bound for the length of a grapheme cluster
const clusters = new Intl.Segmenter(undefined, { granularity: "grapheme" });

export class Offsets {
  constructor(text) {
    this.text = text;
    this.points = null; // unit -> code point; null if they are identical
    if (!WIDE.test(text)) return;
    this.points = new Uint32Array(text.length + 1);
    this.units = new Uint32Array(text.length + 1);
    let point = 0;
    for (let unit = 0; unit < text.length; point += 1) {
      const width = text.codePointAt(unit) > 0xffff ? 2 : 1;
      this.units[point] = unit;
      this.points.fill(point, unit, unit + width);
      unit += width;
    }
    this.units[point] = text.length;
    this.points[text.length] = point;
  }

  /** Return the first unit of a code point. */
  unit(point) {
    return this.points ? this.units[point] : point;
  }

  /** Return the code point of a unit. */
  point(unit) {
    return this.points ? this.points[unit] : unit;
  }

  /** Return the nearest grapheme boundary after (step 1) or before (-1) a unit. */
  character(unit, step) {
    const from = Math.max(0, this.unit(this.point(Math.max(0, unit - NEAR))));
    const near = this.text.slice(from, unit + NEAR);
    const borders = [...clusters.segment(near)].map((piece) => from + piece.index).concat(from + near.length);
    const fits = step > 0 ? borders.filter((b) => b > unit) : borders.filter((b) => b < unit).reverse();
    return fits.length ? fits[0] : unit;
  }

  /** All words as [start, end) in units. */
  get words() {
    this.found ??= [...this.text.matchAll(WORD)].map((m) => [m.index, m.index + m[0].length]);
    return this.found;
  }

  /** Return the index of the first word that ends after a unit. */
  wordAt(unit) {
    let low = 0;
    let high = this.words.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.words[middle][1] > unit) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Return the next word end after (step 1) or before (-1) a unit. */
  wordEnd(unit, step) {
    const ends = this.words;
    const at = this.wordAt(unit);
    if (step > 0) return at < ends.length ? ends[at][1] : unit;
    const before = at < ends.length && ends[at][0] < unit && ends[at][1] < unit ? at : at - 1;
    return before >= 0 ? ends[before][1] : unit;
  }

  wordStart(unit, step) {
    const starts = this.words;
    const at = this.wordAt(unit);
    if (step < 0) {
      const before = at < starts.length && starts[at][0] < unit ? at : at - 1;
      return before >= 0 ? starts[before][0] : unit;
    }
    const next = at < starts.length && starts[at][0] > unit ? at : at + 1;
    return next < starts.length ? starts[next][0] : unit;
  }
}
