"""Notes in HTML or XML, or with character references: their text, with a map to offsets in the
source.

A note is markup if it contains a closing tag, a tag of HTML, an empty-element tag of XML, a
comment, a declaration, a CDATA section, or a character reference that ends with a semicolon. `BP
<120`, `H&P` and `<john@x.org>` are none of these.

The text of a marked-up note has a main section and hidden lines. The main section is what a browser
displays. Tags within a line leave no trace, tags of blocks start a line, cells of a table are
separated by tabs, and references are decoded, also if they were escaped again (`&amp;nbsp;`). A
line break of the source is a space if blocks structure the note. The name of an element that HTML
does not
define is written before its text: `<postalCode>44107</postalCode>` gives `"postalCode": "44107"`.

The hidden lines follow, one per attribute value (`title: ...`; of XML, `<id extension="..."/>`),
comment and declaration. Values that only describe the appearance are left out. Elements `script`
and `style` are in neither section.

The standard library's parser returns no offsets of attribute values, and takes quadratic time on
some malformed notes. This scanner takes linear time: no pattern crosses a `<`, and none backtracks.
What is not well formed is text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from html.entities import html5
from typing import NamedTuple

from clinveil.core.markup_map import Markup

_IN_LINES = """a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label
 mark nobr q s samp small span strike strong sub sup time tt u var wbr"""
_IN_BLOCKS = """address area article aside audio base blockquote body br button canvas
 caption center col colgroup datalist dd details dialog dir div dl dt embed fieldset
 figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html
 iframe img input legend li link main map menu meta nav noscript object ol optgroup option p
 param picture pre script section select source style summary svg table tbody template
 textarea tfoot thead title tr track ul video"""
_INLINE = frozenset(_IN_LINES.split())
_CELLS = frozenset(("td", "th"))
_HTML = _INLINE | _CELLS | frozenset(_IN_BLOCKS.split())
_DROPPED = ("script", "style")
_ATTRIBUTES = r"(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+"
_ENCLOSED = (
    r"<!--(?P<comment>(?:[^-]++|-(?!->))*+)(?P<end_of_comment>-->|\Z)"
    r"|<!\[CDATA\[(?P<data>(?:[^\]]++|\](?!\]>))*+)(?P<end_of_data>\]\]>|\Z)|"
)
_OPEN = (
    r"<(?P<declaration>[!?][A-Za-z][^<>]*+)>"
    rf"|<(?P<closing>/?)(?P<name>[A-Za-z][\w.:-]*+)(?=[\s/>])(?P<attributes>{_ATTRIBUTES}|[^<>]*+)>"
    r"|&(?P<escapes>(?:amp;)*+)"
    r"(?:(?P<reference>#[xX][0-9A-Fa-f]{1,6}|#[0-9]{1,7}|[A-Za-z][A-Za-z0-9]{1,31})(?P<end>;?))?+"
)
_TOKEN = re.compile(_ENCLOSED + _OPEN)
_ENDS = ("end_of_comment", "end_of_data")
_REST = re.compile(_OPEN)  # after a comment or a section that is never closed
_ATTRIBUTE = re.compile(
    r"(?P<name>[^\s\"'=/]++)(?:\s*+=\s*+(?:\"(?P<d>[^\"]*+)\"|'(?P<s>[^']*+)'|(?P<b>[^\s\"']++)))?+"
)
_SIGN = re.compile(
    r"</[A-Za-z][\w.:-]*+\s*+>|<[A-Za-z][\w.:-]*+(?:\s[^<>]*)?/>|<!--|<!\[CDATA\[|<!doctype\s"
    r"|<\?xml[\s-]"
    rf"|<(?:{'|'.join(sorted(_HTML))})(?:\s*+>|\s++[\w:-]++\s*+=\s*+[^<>]*+>)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"&(?:#[xX][0-9A-Fa-f]{1,6}|#[0-9]{1,7}|(?P<entity>[A-Za-z][A-Za-z0-9]{1,31}));"
)
_CLOSING = re.compile(r"</([A-Za-z][\w.:-]*+)\s*+>")
_BLOCK = re.compile(
    rf"</?(?!(?:{'|'.join(sorted(_INLINE))})[\s/>])[A-Za-z][\w.:-]*+[\s/>]", re.IGNORECASE
)
_VALUE = re.compile(r"[^<\n]{1,80}+</")
_TAG_FOLLOWS = re.compile(r"\s*+<(?!!)")
_END_OF = {name: re.compile(rf"</{name}(?:\s[^<>]*+)?>", re.IGNORECASE) for name in _DROPPED}
_BREAK = re.compile(r"[ \t]*+[\r\n]\s*+")
# Attributes of appearance, and the values that describe nothing else.
_OF_LOOKS = """style face font color bgcolor width height size align valign border
 cellpadding cellspacing colspan rowspan nowrap class lang dir type rel charset media scope
 span"""
_LOOKS = frozenset(_OF_LOOKS.split())
_FONTS = (
    "arial|times new roman|courier"
    " new|courier|helvetica|calibri|cambria|verdana|tahoma|georgia|segoe ui|symbol|wingdings|ms"
    " sans serif|trebuchet ms|lucida console|mso\\w*"
)
_STYLE_WORDS = (
    "bold|normal|italic|none|auto|inherit|left|right|center|top|bottom|middle|justify"
    "|underline|solid|black|white|red|blue|gr[ae]y|green|transparent|serif|sans|monospace"
    "|small|medium|large|windowtext|hidden|visible|block|inline|font|family|size|color"
    "|background|margin|padding|border|width|height|text|align|decoration|indent|line|weight"
    "|style|vertical|list|table|layout|fixed|display|space|pre|wrap|page|break|before|after"
    "|always|avoid|position|relative|absolute|float|clear|both|min|max|rgb|collapse|spacing"
    "|letter|word|image|bidi|en|us|utf|css|html|ltr|rtl|iso|row|col|pt"
)
_LOOK = re.compile(
    rf"(?:[\s:;,.()'\"!%&/-]|(?:{_FONTS}|{_STYLE_WORDS})(?!\w)|#[0-9a-f]{{3,8}}(?!\w)"
    r"|\d{1,4}(?:px|pt|em|rem|in|cm|mm|pc|ex)?(?!\w))*+",
    re.IGNORECASE,
)
_SPECIFICATION = re.compile(
    r"[!?](?:doctype\s+html(?:\s[^<>]*\bW3C//DTD\b[^<>]*)?\s*|xml\s[\w\s.=\"'-]*\??)|(?:urn:"
    r"|https?:)[\w./:#-]*",
    re.IGNORECASE,
)
_GAP = "\n\0\n"  # between hidden lines; no detector crosses a NUL


def is_markup(text: str) -> bool:
    """Return whether a note is marked up, per the rule of this module."""
    if "<" in text and _SIGN.search(text):
        return True
    return "&" in text and any(
        match["entity"] is None or f"{match['entity']};" in html5
        for match in _REFERENCE.finditer(text)
    )


@lru_cache(maxsize=2)
def read_markup(text: str) -> Markup | None:
    """Return the text of a marked-up note, or None for plain text."""
    return _Reader(text).read() if is_markup(text) else None


def visible_text(text: str) -> str:
    """Return what is displayed of a note; plain text is returned unchanged."""
    markup = read_markup(text)
    return text if markup is None else markup.visible


def _decoded(match: re.Match[str]) -> tuple[str, int]:
    """Return the characters of a reference and its end in the note; nothing for an ampersand that
    is text.

    A reference that was escaped again, once or several times (`&amp;amp;nbsp;`), gives the same
    characters.
    """
    reference = match["reference"]
    end = match["end"]
    following = match.string[match.end() : match.end() + 1]
    if (
        reference
        and (end or not following.isalnum())
        and (characters := _characters(reference, end))
    ):
        return characters, match.end()
    return ("&", match.end("escapes")) if match["escapes"] else ("", match.end("escapes"))


@lru_cache(maxsize=1 << 10)
def _characters(reference: str, end: str) -> str:
    """Return the characters of a reference; nothing for an unknown one."""
    if reference[0] == "#":
        return html.unescape(f"&{reference};") if end else ""
    return html5.get(reference + end, "")


class _Hidden(NamedTuple):
    """A range of the note for a hidden line.

    Attributes:
        before, after: text around it; `before` replaces the range `key` of the note.
        decode: whether its references are decoded.
    """

    start: int
    end: int
    before: str = ""
    after: str = ""
    key: tuple[int, int] = (0, 0)
    decode: bool = False


class _Reader:
    """Reads one note from start to end."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._pieces: list[str] = []
        self._length = 0
        self._last = "\n"
        self._quoted = False  # whether the next text is the value of a key
        self._joint = False  # whether a tag within the line precedes the next text
        self._verbatim = 0  # depth of `pre` elements
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int]] = []
        self._exact: list[bool] = []
        self._tags: list[tuple[int, int, str]] = []
        self._dropped: list[tuple[int, int]] = []
        self._hidden: list[_Hidden] = []
        self._folded = False  # whether a line break is a space

    def read(self) -> Markup:
        """Return the result."""
        source = self.source
        # Of the last one.
        ends = {match[1].lower(): match.start() for match in _CLOSING.finditer(source)}
        blocks = sum(1 for _ in _BLOCK.finditer(source))
        self._folded = 4 * blocks >= source.count("\n") and blocks > 0
        position = scan = 0
        token = _TOKEN
        while match := token.search(source, scan):
            scan = match.end()
            enclosed = token is _TOKEN and match.lastgroup in _ENDS
            if enclosed and not match[match.lastgroup or 0]:
                scan = match.start()
                token = _REST
                continue
            name = (match["name"] or "").lower()
            unknown = name and name not in _HTML and name not in ends
            if unknown and not match["attributes"].endswith("/"):
                scan = match.start() + 1  # a word in angle brackets
                continue
            if match["escapes"] is not None:
                position, scan = self._reference(match, position)
                continue
            self._copy(position, match.start())
            if name in _DROPPED and not match["closing"] and ends.get(name, 0) >= scan:
                scan = self._drop(name, match.start(), scan)
            elif name:
                self._tag(match, name)
            else:
                self._data(match, enclosed=enclosed)
            position = scan
        self._copy(position, len(source))
        main = self._length
        hidden = len(self._starts)
        for line in self._hidden:
            self._line(line)
        return Markup(
            source,
            "".join(self._pieces),
            main,
            tuple(self._dropped),
            self._starts,
            self._ranges,
            self._exact,
            hidden,
            self._tags,
        )

    def _reference(self, match: re.Match[str], position: int) -> tuple[int, int]:
        """Add the characters of a reference, after the text from `position` on.

        Returns where the text that follows begins, and where the search continues.
        """
        decoded, end = _decoded(match)
        if not decoded:
            return position, end
        self._copy(position, match.start())
        self._begin(decoded[0], match.start())
        self._add(decoded, match.start(), end, exact=False)
        return end, end

    def _data(self, match: re.Match[str], *, enclosed: bool) -> None:
        """Add a CDATA section as text, a comment or a declaration as a hidden line."""
        if enclosed and match["data"] is not None:
            self._copy(*match.span("data"))
            return
        start, end = match.span("comment" if enclosed else "declaration")
        if enclosed or not _SPECIFICATION.fullmatch(self.source, start, end):
            self._hidden.append(_Hidden(start, end))

    def _drop(self, name: str, start: int, inside: int) -> int:
        """Leave out an element; return its end."""
        match = _END_OF[name].search(self.source, inside)
        end = match.end() if match else inside
        if match:
            self._dropped.append((start, end))
        return end

    def _add(self, text: str, start: int, end: int, *, exact: bool) -> None:
        if text:
            self._starts.append(self._length)
            self._ranges.append((start, end))
            self._exact.append(exact)
            self._pieces.append(text)
            self._length += len(text)
            self._last = text[-1]

    def _copy(self, start: int, end: int) -> None:
        """Add text of the source."""
        if start >= end:
            return
        if not self._folded or self._verbatim:
            self._begin(self.source[start], start)
            self._add(self.source[start:end], start, end, exact=True)
            return
        for match in _BREAK.finditer(self.source, start, end):
            if start < match.start():
                self._begin(self.source[start], start)
                self._add(self.source[start : match.start()], start, match.start(), exact=True)
            if self._last not in "\n\t ":
                self._add(" ", match.start(), match.end(), exact=False)
            start = match.end()
        if start < end:
            self._begin(self.source[start], start)
            self._add(self.source[start:end], start, end, exact=True)

    def _begin(self, first: str, offset: int) -> None:
        """Separate words that only a tag within the line separates: `<b>Name</b><i>Smith</i>`."""
        if self._joint and self._last.islower() and (first.isupper() or first.isdigit()):
            self._add(" ", offset, offset, exact=False)
        self._joint = False

    def _separate(self, sign: str, offset: int) -> None:
        self._joint = False
        if self._last != "\n" and not (sign == "\t" and self._last == "\t"):
            self._add(sign, offset, offset, exact=False)

    def _tag(self, match: re.Match[str], name: str) -> None:
        start, end = match.span()
        closing = bool(match["closing"])
        empty = "/" if match["attributes"].endswith("/") else ""
        self._tags.append((start, end, f"<{match['closing']}{match['name']}{empty}>"))
        if name == "pre":
            self._verbatim = max(0, self._verbatim + (-1 if closing else 1))
        if name in _CELLS:
            if not closing:
                self._separate("\t", start)
        elif name in _INLINE:
            self._joint = True
        else:
            if self._quoted:
                self._add('"', start, start, exact=False)
                self._quoted = False
            self._separate("\n", start)
            if name not in _HTML and not closing and not empty:
                self._name(match, end)
        if not closing and match["attributes"].strip(" /\r\n\t"):
            self._hidden += self._attributes(match, name)

    def _name(self, match: re.Match[str], end: int) -> None:
        """Write the name of an element before its text, like a key of JSON before a value."""
        if _TAG_FOLLOWS.match(self.source, end):
            return
        start = match.start("name") + match["name"].rfind(":") + 1
        self._quoted = _VALUE.match(self.source, end) is not None
        self._add('"' * self._quoted, start, start, exact=False)
        self._add(self.source[start : match.end("name")], start, match.end("name"), exact=True)
        self._add('": "' if self._quoted else ": ", end, end, exact=False)

    def _attributes(self, match: re.Match[str], name: str) -> Iterator[_Hidden]:
        """Yield the values of a tag's attributes, each with the name of what it describes."""
        attributes = list(_ATTRIBUTE.finditer(self.source, *match.span("attributes")))
        named = next(
            (
                attribute[attribute.lastgroup or 0]
                for attribute in attributes
                if attribute["name"].lower() == "name"
            ),
            "",
        )
        for attribute in attributes:
            kind = attribute.lastgroup or "name"
            start, end = attribute.span(kind)
            key = attribute["name"].lower()
            is_appearance = key in _LOOKS and _LOOK.fullmatch(self.source, start, end)
            defined = key.startswith(("xmlns", "xsi:")) and _SPECIFICATION.fullmatch(
                self.source, start, end
            )
            if start == end or is_appearance or defined:
                continue
            if kind == "name":  # an attribute without a value
                yield _Hidden(start, end)
                continue
            before = f"{named if named and key in ('value', 'content') else attribute['name']}: "
            after = ""
            if name not in _HTML:
                before = f'<{match["name"]} {attribute["name"]}="'
                after = '"/>'
            yield _Hidden(start, end, before, after, attribute.span("name"), decode=True)

    def _line(self, line: _Hidden) -> None:
        """Add one hidden line."""
        start = line.start
        first = line.key[0] if line.before else start
        self._add(_GAP, first, first, exact=False)
        self._add(line.before, *line.key, exact=False)
        for match in _REST.finditer(self.source, start, line.end) if line.decode else ():
            decoded, end = _decoded(match) if match["escapes"] is not None else ("", 0)
            if decoded:
                self._add(self.source[start : match.start()], start, match.start(), exact=True)
                self._add(decoded, match.start(), end, exact=False)
                start = end
        self._add(self.source[start : line.end], start, line.end, exact=True)
        self._add(line.after, line.end, line.end, exact=False)
