"""The text of a marked-up note, with a map to offsets in the note."""

from __future__ import annotations

import html
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Markup:
    """The text of a marked-up note, with a map to offsets in the note; its repr contains no text.

    The map consists of segments of the text, each with a range of the source. Offsets within an
    exact segment differ by a constant; each character of another segment has the whole range.

    Attributes:
        source: the note. text: main section and hidden lines. main: length of the main section.
        dropped: ranges of `script` and `style` elements in the source.
    """

    source: str = field(repr=False)
    text: str = field(repr=False)
    main: int
    dropped: tuple[tuple[int, int], ...] = field(repr=False)
    _starts: Sequence[int] = field(repr=False)  # of the segments, in the text
    _ranges: Sequence[tuple[int, int]] = field(repr=False)  # in the source
    _exact: Sequence[bool] = field(repr=False)
    _hidden: int = field(repr=False)  # index of the first hidden segment
    # Source range, and the tag without attributes.
    _tags: Sequence[tuple[int, int, str]] = field(repr=False)

    @property
    def visible(self) -> str:
        """The main section, without white space at its ends."""
        return self.text[: self.main].strip()

    def to_source(self, start: int, end: int) -> tuple[int, int]:
        """Return the range in the note of a non-empty range of the text."""
        if start < self.main < end:
            end = self.main
        first = self._offset(start)[0]
        last = self._offset(end - 1)[1]
        return first, max(last, first + 1)

    def _offset(self, position: int) -> tuple[int, int]:
        """Return the range in the note of one character of the text."""
        index = bisect_right(self._starts, position) - 1
        start, end = self._ranges[index]
        if not self._exact[index]:
            return start, end
        offset = start + position - self._starts[index]
        return offset, offset + 1

    def to_text(self, start: int, end: int) -> tuple[int, int]:
        """Return the range in the text of a range in the note; an empty one if the text has none of
        it.
        """
        text_range = self._within(0, self._hidden, start, end)
        return (
            text_range
            if text_range[0] < text_range[1]
            else self._within(self._hidden, len(self._starts), start, end)
        )

    def _within(self, low: int, high: int, start: int, end: int) -> tuple[int, int]:
        """Return the range in the text of a range in the note, among some segments."""
        first = bisect_right(self._ranges, start, low, high, key=lambda part: part[1])
        last = bisect_left(self._ranges, end, low, high, key=lambda part: part[0])
        if first >= last:
            return 0, 0
        begin = self._starts[first]
        if self._exact[first]:
            begin += max(0, start - self._ranges[first][0])
        stop = self._starts[last] if last < len(self._starts) else len(self.text)
        if self._exact[last - 1]:
            stop = (
                self._starts[last - 1]
                + min(end, self._ranges[last - 1][1])
                - self._ranges[last - 1][0]
            )
        return begin, max(begin, stop)

    def tags(self, start: int, end: int) -> str:
        """Return the tags within a range of the note, without their attributes."""
        first = bisect_left(self._tags, start, key=lambda tag: tag[0])
        last = bisect_right(self._tags, end, lo=first, key=lambda tag: tag[1])
        return "".join(tag for _, _, tag in self._tags[first:last])

    def escaped(self, start: int, text: str) -> str:
        """Return a text as written at an offset of the note: with references, also for quotes in an
        attribute.
        """
        return html.escape(text, quote=self._is_hidden(start))

    def _is_hidden(self, start: int) -> bool:
        first, last = self._within(0, self._hidden, start, start + 1)
        return first == last
