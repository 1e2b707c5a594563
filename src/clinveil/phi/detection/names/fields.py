"""Names in structured text (JSON, XML, headers `Smith, John  MRN`, file names, accounts), initials,
damaged names.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from clinveil.lexicons import LexicalClass, lexical_classes
from clinveil.phi.detection.detector import words
from clinveil.phi.detection.names.cue_words import CREDENTIALS, NO_NAMES
from clinveil.phi.detection.names.cues import capitals
from clinveil.phi.detection.names.state import NameState, is_particle
from clinveil.phi.detection.note import NoteView, look_up
from clinveil.phi.matching.matcher import Anchor, matcher
from clinveil.phi.matching.wordtable import mark

_SHORTEST_LIFE = 15  # years
_LIFE = matcher(
    re.compile(
        r"\((?:(?:born|n[eé]e|DOB|dob)\b"
        r"|(?:\d{1,2}[ ])?[A-Z][a-z]{2,8}[ ](?:\d{1,2},[ ])?(?P<first>1[6-9]\d\d|20\d\d)[ ]?-[ ]?"
        r"(?:\d{1,2}[ ])?[A-Z][a-z]{2,8}[ ](?:\d{1,2},[ ])?(?P<last>1[6-9]\d\d|20\d\d)\))"
    ),
    Anchor(signs="(", first="[(]"),
)


class NameSpan(NamedTuple):
    """A span of the plain copy of the note, with the reason why it is a name."""

    start: int
    end: int
    why: str


_OWNERS = (
    "patient|pt|family|given|first|last|middle|maiden|full|preferred|display|legal|provider"
    "|physician|doctor|clinician|author|nurse|contact|guardian|mother|father|spouse|subscriber"
    "|surgeon|attending|resident|user|birth|alias|member"
)
_KEY = (
    rf"(?:(?:{_OWNERS})s?["
    rf" _-]?)*(?:names?|surname|family|given|forename|nombre|apellidos?)|(?:{_OWNERS})"
)
_JSON = re.compile(
    rf"""(["'])(?:{_KEY})\1\s*:\s*\[?\s*(?P<q>["'])(?P<phi>[^"\n]{{2,60}}?)(?P=q)""", re.I
)
_XML = re.compile(
    rf"<(?:\w+:)?(?P<tag>{_KEY})\b[^<>]{{0,80}}>\s*(?P<phi>[^<>]{{2,60}}?)\s*</", re.I
)
_XML_VALUE = re.compile(
    rf"<(?:\w+:)?(?:{_KEY})\s[^<>]{{0,40}}?value=\"(?P<phi>[^\"<>]{{2,60}})\"", re.I
)
_KEYED = re.compile(
    r"(?<![^\W_])(?:pt|patient|subj|client|guarantor|nok|mother|father|provider|prov"
    r"|contact)[_-]?(?:last|first|family"
    r"|given|middle|sur|fore)?_?(?:name)?[ ]?=[ ]?[\"']?(?P<phi>[^\W\d_][^;,&"
    r"|\n\"'=]{1,40}?)(?=[;,&|\n\"']|\Z)",
    re.I,
)
_HEADER = re.compile(
    r"^[ \t]*(?P<phi>[^\W\d_][\w'-]+(?:[ -][^\W\d_][\w'-]+){0,2}[ ]?,[ ]?[^\W\d_][\w'-]+(?:["
    r" ][^\W\d_][\w'.-]*){0,2})"
    r"(?=[ \t]*(?:$|\(|[ \t]{2}|\t|\||;|-[ ]|#|(?:MR|MRN|DOB|ID|Acct|Age|Sex|Page|Unit|Room|Rm"
    r"|Bed)\b|\d))",
    re.M,
)
_ROOM = re.compile(r"[ \t]*(?:rm|room|bed|mrn?|dob|acct|unit|age|sex|\(?\d)\b", re.I)
_EXTENSION = matcher(
    re.compile(
        r"\.(?:pdf|jpe?g|png|docx?|dcm|tiff?|txt|rtf|csv|xlsx?|zip|mp[34]|wav|gif|xml)\b", re.I
    ),
    Anchor(
        "csv* dcm* doc* gif* jpeg* jpg* mp pdf* png* rtf* tif* txt* wav* xls* xml* zip*",
        within=1,
        first="[.]",
    ),
)
_FILE = re.compile(r"[^\W\d][\w-]*(?=" + _EXTENSION.pattern.pattern + ")", re.I)
_ACCOUNT_WORDS = words("user username userid login logon logged operator opid")
_ACCOUNT_WORD = mark(lambda word: look_up(word)[1] in _ACCOUNT_WORDS)
_PIECE = re.compile(r"[^\W\d_]+")
_ACCOUNT = re.compile(
    r"\b(?:user(?:[ _-]?(?:name|id))?|log[io]n(?:[ _-]?(?:name|id))?|logged in as|opid"
    r"|operator id)\b[ \t]*(?:[:=#][ \t]*)?(?P<phi>[a-z][a-z0-9]*[._-]?[a-z0-9]+)\b(?![@ ]?[(])"
)
_ACTED = re.compile(r"\b(?:by|as)[ \t]+\Z", re.I)
_INITIALS = re.compile(r"(?<![\w.])[A-Z]\.[ ]?[A-Z]\.(?:[ ]?[A-Z]\.)?(?!\w)")
_TO_INITIALS = re.compile(
    r"\b(?:with|by|per|signed|from|initials?|patient|pt|mrs?|ms|dr|named?|son|daughter|wife|husband"
    r"|mother|father|sister"
    r"|brother|re|cc|attending|nurse|told|called|saw|notified|resident|provider|author|client|asked"
    r"|thanked"
    r"|reassured)\b['\".:,( ]{0,4}\Z",
    re.I,
)
_FROM_INITIALS = re.compile(
    r",?\s+(?:is|was|has|had|will|denies|reports|states|presented|presents|says|came|returned"
    r"|complains|feels|did|does"
    r"|remains|smokes|slept|spoke|needs|wants|tolerated|declined|walked|refused|attended|arrived"
    r"|called|asked|wanted"
    r"|\(?\d\d?\d?[ -]?(?:yo\b|y/o|year)|an?\s+\d)|'s\s"
)
_BARE_INITIALS = re.compile(
    r"\b(?:signed(?: by)?|initials|initialed by|dictated by|transcribed by|entered by|typed by)"
    r"[: ]{1,3}(?P<phi>[A-Z]{2,3})\b"
)
_DICTATED = re.compile(r"^[ \t]*(?P<phi>[A-Z]{2,3}[/:][a-z]{2,3})\d{0,4}[ \t]*$", re.M)
_SIGNING = words("signed initials initialed dictated transcribed entered typed")
_SIGNS = mark(lambda word: look_up(word)[1] in _SIGNING)
_NEAR_END = 300
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
CAPITAL = mark(lambda word: look_up(word)[0] in _CAPITALS)
_ABBREVIATED = words(
    "po iv im sc us md do rn np pa am pm bp er or ed qd bid tid qid prn hs sq od os ou dc la ny uk"
    " eg ie ad bc cc hr tv"
    " id et ng gi gu as au ap pc ac nj nc sd nd va ma ct ri nh vt me de wv ky tn al ms mo ia ok tx"
    " nm az ut co wy mt wa"
    " ca ro rom lp pt ot sp st ph ba bs ma mph dds esq jr sr ii uti ekg ecg mri hiv gyn ent usa fu"
    " ho so wo iq ob bm dr"
    " lmp dob doa vs tb ct xr cv cns ls ns nt tm rv lv ra av"
)


def field_names(note: NoteView) -> Iterator[NameSpan]:
    """Yield the names in the fields of structured text."""
    text = note.plain
    if '":' in text or "':" in text or '" :' in text:
        yield from _values(_JSON, text, "name field of JSON")
    if "</" in text:
        yield from _values(_XML, text, "name element of XML")
    if 'value="' in text:
        yield from _values(_XML_VALUE, text, "name element of XML")
    if "=" in text:
        yield from _values(_KEYED, text, "name field of a key")
    if any(_EXTENSION.matches(note)):
        yield from _files(text)
    for match in _ACCOUNT.finditer(text) if note.words.marked(_ACCOUNT_WORD) else ():
        name = match["phi"]
        explicit = (
            ":" in match[0] or "=" in match[0] or "." in name or any(c.isdigit() for c in name)
        )
        explicit = (
            explicit or _ACTED.search(text, max(0, match.start() - 8), match.start()) is not None
        )
        if explicit and not any(
            lexical_classes(piece) & LexicalClass.WORD for piece in _PIECE.findall(name)
        ):
            yield NameSpan(*match.span("phi"), "user name")


def _values(pattern: re.Pattern[str], text: str, why: str) -> Iterator[NameSpan]:
    for match in pattern.finditer(text):
        pieces = _PIECE.findall(match["phi"])
        if pieces and not all(piece.lower() in NO_NAMES for piece in pieces) and len(pieces) < 7:
            yield NameSpan(*match.span("phi"), why)


def _files(text: str) -> Iterator[NameSpan]:
    """Yield two adjacent listed names in a file name."""
    for match in _FILE.finditer(text):
        pieces = [(piece, lexical_classes(piece[0])) for piece in _PIECE.finditer(match[0])]
        for (first, kind), (second, next_kind) in pairwise(pieces):
            names = kind & LexicalClass.NAME and next_kind & LexicalClass.NAME
            given = (
                kind | next_kind
            ) & LexicalClass.USUAL_GIVEN and not kind & next_kind & LexicalClass.WORD
            if names and given and len(first[0]) > 2 and len(second[0]) > 2:
                yield NameSpan(
                    match.start() + first.start(), match.start() + second.end(), "name of a file"
                )


def headers(state: NameState) -> Iterator[tuple[int, int]]:
    """Yield runs of words at the beginning of a line: `Smith, John  MRN 123`."""
    if "," not in state.text:
        return
    for match in _HEADER.finditer(state.text):
        start, end = word_run(state.note, *match.span("phi"))
        text = state.text
        words_of_run = state.words[start:end]
        signs_around = "".join(
            text[w.start - 1 : w.start] + text[w.end : w.end + 2].strip("-")[:1]
            for w in words_of_run
        )
        if _named(state, start, end) and not any(
            map(str.isdigit, signs_around)
        ):  # not `BRCA1, CYP2D6`
            yield start, end


def people_with_dates(state: NameState) -> Iterator[tuple[int, int]]:
    """Yield capitalised words before a date of birth or the dates of a life in brackets: `Hope Bell
    (born 3/4/1950)`.
    """
    texts = state.words.texts
    for match in _LIFE.matches(state.note):
        first, last = match.group("first", "last")
        if first and int(last) - int(first) < _SHORTEST_LIFE:
            continue  # `Stroke Unit (May 4, 2019 - June 7, 2019)`
        end = bisect_left(state.words.starts, match.start())
        run = list(capitals(state.note, end - 1))
        if not end:
            continue
        is_quoted = state.text[state.words[end - 1].end : match.start()].strip() in ("", '"', "'")
        if is_quoted and len(run) > 1 and texts[run[0]].isupper() == texts[end - 1].isupper():
            yield run[0], end


def _named(state: NameState, start: int, end: int) -> bool:
    row = [w for w in state.words[start:end] if len(w.text) > 1]
    comma = next(
        (i for i, w in enumerate(row[:-1]) if "," in state.text[w.end : row[i + 1].start]), None
    )
    if comma is None or any(w.classes & LexicalClass.FUNCTION or w.lower in NO_NAMES for w in row):
        return False
    family = row[comma]
    given = row[comma + 1]
    if family.capital and any(w.ordinary and not w.capital and not is_particle(w) for w in row):
        return False
    if family.text.islower() and given.text.islower():
        return (
            not (family.ordinary or given.ordinary)
            and _ROOM.match(state.text, state.words[end - 1].end) is not None
        )
    if (
        not (family.capital and given.capital)
        or family.shouted < given.shouted
        or given.text in CREDENTIALS
    ):
        return False
    if given.ordinary:
        return state.given_like(given) and (not family.ordinary or state.family_like(family))
    if family.ordinary:
        return state.family_like(family) and bool(given.classes & LexicalClass.USUAL_GIVEN)
    followed = state.text[state.words[end - 1].end : state.words[end - 1].end + 1] not in (
        "",
        "\r",
        "\n",
    )
    return bool(given.listed and family.listed) or not given.shouted or followed


def word_run(note: NoteView, start: int, end: int) -> tuple[int, int]:
    """Return the half-open run of word indices that a span covers."""
    return bisect_left(note.words.starts, start), bisect_left(note.words.starts, end)


def initials(state: NameState) -> Iterator[NameSpan]:
    """Yield `J.S.` if it matches a name of the note or the context is a person, `JS` after a word
    for signing, and
    `JS/mk` on a line at the end.
    """
    text = state.text
    known = _name_initials(state)
    starts = state.words.starts
    reach = 0
    # Only one-letter words are tried.
    for start in (starts[index] for index in state.words.marked(CAPITAL)):
        match = _INITIALS.match(text, start) if start >= reach else None
        if match is None:
            continue
        reach = match.end()
        letters = "".join(filter(str.isalpha, match[0]))
        if letters.lower() in _ABBREVIATED:
            continue
        spoken = _TO_INITIALS.search(text, max(0, match.start() - 16), match.start())
        if letters in known or spoken or _FROM_INITIALS.match(text, match.end()):
            yield NameSpan(*match.span(), "initials")
    for match in _BARE_INITIALS.finditer(text) if state.words.marked(_SIGNS) else ():
        if match["phi"].lower() not in _ABBREVIATED and match["phi"] not in CREDENTIALS:
            yield NameSpan(*match.span("phi"), "initials")
    for match in _DICTATED.finditer(text, max(0, len(text) - _NEAR_END)):
        yield NameSpan(*match.span("phi"), "initials of a dictation")


def _name_initials(state: NameState) -> set[str]:
    """Return the initials of the names detected so far, in both orders."""
    initials_of_names = set()
    for run in state.runs:
        letters = [text[0].upper() for text in state.words.texts[run.start : run.end]]
        if len(letters) > 1:
            initials_of_names |= {
                "".join(letters),
                letters[0] + letters[-1],
                letters[-1] + letters[0],
            }
    return initials_of_names


def name_accounts(state: NameState) -> Iterator[int]:
    """Yield words that combine a detected name the way account names do: jsmith, smithj, johns,
    johnsmith.
    """
    accounts: set[str] = set()
    for run in state.runs:
        row = [lower for lower in state.words.lowers[run.start : run.end] if len(lower) > 2]
        if len(row) > 1:
            for first, second in ((row[0], row[-1]), (row[-1], row[0])):
                accounts |= {first[0] + second, first + second[0], first + second}
    lowers = state.words.lowers
    if accounts and not accounts.isdisjoint(lowers):
        yield from (i for i, lower in enumerate(lowers) if lower in accounts and len(lower) > 4)


# Names in damaged text: letters set apart by spaces (`J o h n`), and letters that OCR misread
# (`J0hn`, `Srnith`).
_SPACED = re.compile(
    r"(?:[A-Z](?: [a-z]){2,}(?: {1,3}[A-Z](?: [a-z]){2,})*"
    r"|[A-Z](?: [A-Z]){3,}(?: {2,3}[A-Z](?: [A-Z]){2,})*)(?![^\W_])"
)
_GROUP = re.compile(r"[A-Z](?: [a-z])+|[A-Z](?: [A-Z])+")
_DIGIT = re.compile(r"[013458](?=[A-Za-z])")
_MISREAD_WORD = re.compile(r"[A-Z013458][A-Za-z013458]{3,}(?![^\W_])")
_SURNAME = re.compile(r" [A-Z013458][A-Za-z013458]+(?![^\W_])")
_READINGS = (str.maketrans("013458", "oleasb"), str.maketrans("013458", "oieasb"))
_SHORTEST = 5
_LONGEST = 24
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY


def _usual(word: str) -> bool:
    kind = lexical_classes(word)
    return bool(kind & _USUAL) and not kind & LexicalClass.WORD


def _misread(written: str) -> bool:
    """Return whether an unlisted word is a usual name if `rn` was m, or `vv` was w."""
    text, lower, kind = look_up(written)
    if (
        len(text) < _SHORTEST
        or ("rn" not in lower and "vv" not in lower)
        or text == lower
        or kind & (LexicalClass.NAME | LexicalClass.WORD)
    ):
        return False
    return _usual(lower.replace("rn", "m")) or _usual(lower.replace("vv", "w"))


_MISREAD = mark(_misread)


def damaged_names(state: NameState) -> Iterator[NameSpan]:
    """Yield letter-spaced names and names with misread letters."""
    reach = 0
    for index in state.words.marked(CAPITAL):
        start = state.words.starts[index]
        match = _SPACED.match(state.text, start) if start >= reach else None
        if match is None:
            continue
        reach = match.end()
        names = [
            group for group in _GROUP.finditer(match[0]) if _may_be_name(group[0].replace(" ", ""))
        ]
        if names:
            yield NameSpan(start + names[0].start(), start + names[-1].end(), "spaced letters")
    yield from _with_digits(state.text)
    for index in state.words.marked(_MISREAD):
        word = state.words[index]
        yield NameSpan(word.start, word.end, "misread name")


def _may_be_name(word: str) -> bool:
    """Return whether joined letters are a listed name or, in mixed case, an unlisted word."""
    kind = lexical_classes(word)
    if kind & LexicalClass.WORD:
        return bool(kind & _USUAL) and not kind & LexicalClass.FUNCTION and not word.isupper()
    return bool(kind & LexicalClass.NAME) or (len(word) > 3 and not word.isupper())


def _with_digits(text: str) -> Iterator[NameSpan]:
    """Yield words that are usual names if their digits are read as letters."""
    reach = 0
    for digit in _DIGIT.finditer(text):
        start = digit.start()
        while start > max(reach, digit.start() - _LONGEST) and text[start - 1].isalnum():
            start -= 1
        match = _MISREAD_WORD.match(text, start) if start >= reach else None
        if match is None:
            continue
        reach = match.end()
        letters = sum(map(str.isalpha, match[0]))
        if letters * 2 > len(match[0]) and any(map(_usual, _readings(match[0]))):
            surname = _SURNAME.match(text, reach)
            if surname and any(
                lexical_classes(reading) & _USUAL for reading in _readings(surname[0][1:])
            ):
                reach = surname.end()
            yield NameSpan(match.start(), reach, "misread name")


def _readings(word: str) -> list[str]:
    return [word.lower().translate(table) for table in _READINGS]
