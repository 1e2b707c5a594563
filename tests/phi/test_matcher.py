"""A pattern is tried only near its declared anchor, with the same matches as `finditer`."""

from __future__ import annotations

import pickle
import re
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marked import unmark
from pattern_walk import declared, faults

from clinveil.corpus.demo import demo_notes
from clinveil.phi import DETECTORS, NoteView
from clinveil.phi.detection.detector import Rule
from clinveil.phi.detection.detectors import tables
from clinveil.phi.detection.names import cues, fields
from clinveil.phi.matching import matcher as matcher_module
from clinveil.phi.matching.matcher import FAR, LONGEST_RUN, Anchor, Matcher, candidates, matcher

RULES = [
    pytest.param(matcher(rule.pattern, rule.anchor), id=f"{detector.name}-{number}")
    for detector in DETECTORS
    for number, rule in enumerate(getattr(detector, "rules", ()))
    if isinstance(rule, Rule)
]
OTHERS = [
    pytest.param(value, id=f"{module.__name__.rpartition('.')[2]}-{name}")
    for module in (cues, fields, tables)
    for name, value in vars(module).items()
    if isinstance(value, Matcher)
]


def tried(matching, text):
    """Offsets of the matches near the anchor; the text is taken as it is."""
    view = NoteView(text)
    view.__dict__["plain"] = text
    return [match.span() for match in matching.matches(view)]


def derived(pattern):
    """A matcher with the anchor that the walk over the pattern yields."""
    return matcher(pattern, declared(pattern))


def everywhere(pattern, text):
    """The same without a filter."""
    return [match.span() for match in pattern.finditer(text)]


# What a generator of strings cannot plan for.
ASSERTIONS = re.compile(r"\(\?(?:<?!|=)[^()]*\)")


def like(pattern):
    """Strings that match a pattern, or nearly."""
    source = pattern.pattern if ")]" in pattern.pattern else ASSERTIONS.sub("", pattern.pattern)
    return st.from_regex(re.compile(source, pattern.flags)).filter(lambda text: len(text) < FAR)


NEIGHBOURS = st.text("aA1-./ \n,:'(é\u0130ſ", max_size=6)
FILLING = st.sampled_from(
    ["", " ", "\n", ". The ", " in 12 / 3 ", "St. ", " 03-", "x", ", MA 02114 ", "Dr. Hill of "]
)


@pytest.mark.parametrize("matching", [*RULES, *OTHERS])
def test_every_match_contains_the_anchor_that_is_declared(matching):
    assert matching.anchor is not None, f"declare {declared(matching.pattern)}"
    missing = faults(matching.pattern, matching.anchor)
    assert not missing, f"{missing} of {matching.anchor}; derived: {declared(matching.pattern)}"


@pytest.mark.parametrize("matching", [*RULES, *OTHERS])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_an_anchor_changes_no_result_of_a_rule(matching, data):
    matches = data.draw(st.lists(like(matching.pattern), min_size=1, max_size=2))
    text = "".join(
        data.draw(FILLING) + data.draw(NEIGHBOURS) + match + data.draw(NEIGHBOURS)
        for match in matches
    )
    for shape in (text, text.upper(), text.lower()):
        assert tried(matching, shape) == everywhere(matching.pattern, shape)


def test_an_anchor_changes_no_result_on_notes():
    notes = [text for batch in demo_notes(40, 5) for text in batch.column("text").to_pylist()]
    rules = [param.values[0] for param in [*RULES, *OTHERS]]
    examples = "\n".join(
        unmark(example)[0] for detector in DETECTORS for example in detector.examples
    )
    for text in (*notes, examples, examples.upper(), examples.lower()):
        view = NoteView(text)
        for matching in rules:
            near = [match.span() for match in matching.matches(view)]
            assert near == everywhere(matching.pattern, view.plain)


@pytest.mark.parametrize(
    ("pattern", "anchor", "missing"),
    [
        (r"\bfax\s\d{7}|\bphone", Anchor("fax"), "words, digits or signs"),
        (r"fax\b", Anchor("fax"), "words, digits or signs"),
        (r"\bfax\s\d{3}", Anchor(digits=4), "words, digits or signs"),
        (r"\d+[-/]\d", Anchor(signs="/", within=FAR), "words, digits or signs"),
        (r"\d\d/", Anchor(signs="/", within=1), "within"),
        (r"\d\d/", Anchor(signs="/", within=2, first="[A-Z]"), "first"),
        (r"(?<![a-z])\d\d/", Anchor(signs="/", within=2, after=r"\D"), "after"),
    ],
)
def test_an_anchor_that_hides_a_match_is_refused(pattern, anchor, missing):
    assert faults(re.compile(pattern), anchor) == [missing]


@pytest.mark.parametrize(
    ("pattern", "anchor"),
    [
        (r"(?i)\b(?:fax|phones?)\s\d{7}", Anchor("fax phone*")),
        (r"(?i)\b(?:fax|phones?)\s\d{7}", Anchor(digits=7, within=7, first="[A-Za-z]")),
        (r"\bPhone:", Anchor("phone")),
        (r"(?:cell |home )?[Pp]hone", Anchor("*hone*", within=6)),
        (r"(?:fax number|phone line):", Anchor("number* line*", within=6)),
    ],
)
def test_an_anchor_may_be_weaker_than_the_pattern(pattern, anchor):
    assert faults(re.compile(pattern), anchor) == []


@pytest.mark.parametrize("arguments", [{}, {"words": "fax", "digits": 3}, {"words": "fax no."}])
def test_an_anchor_is_words_or_digits_or_signs(arguments):
    with pytest.raises(ValueError, match="anchor"):
        assert Anchor(**arguments).strings


# A small grammar of patterns, and texts of the characters that they are made of.
ATOMS = st.sampled_from(
    [
        "(?<![a-zA-Z])",
        "(?!a|-)",
        "(?=a)",
        "(?<=a)",
        r"(?<!\w)",
        r"(?!\w)",
        r"(?=\w*-)",
        "a",
        "b",
        "ab",
        "ba",
        "[ab]",
        "[^a]",
        "A",
        r"\d",
        "1",
        r"\s",
        r"\w",
        "-",
        r"\b",
        r"\.",
        ".",
        "(?:)",
        " ",
        "$",
        "^",
    ]
)


def _grown(inner):
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{1,2}", "+?", "{0,3}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map(lambda part: f"(?i:{part})"),
        inner.map(lambda part: f"(?:({part})-?x)"),
    )


PATTERNS = st.lists(st.recursive(ATOMS, _grown, max_leaves=7), min_size=1, max_size=3).map("".join)
TEXTS = st.text("aabbAB11 -.\nx'é\u0130\u212aſ", max_size=30)


@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(source=PATTERNS, folded=st.booleans(), texts=st.lists(TEXTS, min_size=3, max_size=6))
@pytest.mark.slow
def test_a_filter_changes_no_result_of_any_pattern(source, folded, texts):
    pattern = re.compile(source, re.IGNORECASE | re.MULTILINE if folded else 0)
    for text in texts:
        assert tried(derived(pattern), text) == everywhere(pattern, text)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(source=PATTERNS, group=PATTERNS, texts=st.lists(TEXTS, min_size=3, max_size=6))
def test_a_pattern_may_refer_to_what_it_found(source, group, texts):
    pattern = re.compile(rf"({group})-?\1{source}")
    for text in texts:
        assert tried(derived(pattern), text) == everywhere(pattern, text)


def anchored(source, flags=0):
    return declared(re.compile(source, flags))


def test_the_rarest_text_of_every_match_is_derived():
    assert anchored(r"\bchart\s*:\s*\d+", re.I) == Anchor("chart*")
    assert anchored(r"(?:fax|phone)\s(?:no\.)?") == Anchor("*fax *phone")
    assert anchored(r"(?<!\d)\d{3}-\d{2}-\d{4}").digits >= 3
    assert anchored(r"[\w.]+@\w+").signs == "@"


def test_a_pattern_that_needs_no_text_has_no_anchor():
    assert anchored(r"\w*\s?") is None
    assert anchored(r"(?:a|)b?") is None
    assert anchored(r".*") is None


def test_the_letters_that_fold_to_ascii_ones_are_all_known():
    letter = re.compile("[a-z]", re.IGNORECASE)
    found = {chr(code) for code in range(128, sys.maxunicode + 1) if letter.fullmatch(chr(code))}
    assert found == set("\u0130\u0131\u017f\u212a")
    pattern = re.compile("task in", re.I)
    for odd in found:
        text = f"ta{odd}k in {odd}n tas{odd} in task {odd}n"
        assert tried(matcher(pattern, Anchor("*task")), text) == everywhere(pattern, text)


def test_a_pattern_that_is_new_is_found_in_a_note_that_was_read_before():
    view = NoteView("the quokka and the numbat")
    assert list(matcher(re.compile("numbat"), Anchor("numbat")).matches(view))
    later = matcher(re.compile("quokk[a]"), Anchor("quokka"))
    assert [match.span() for match in later.matches(view)] == [(4, 10)]


FULL_OF_SPOTS = ["@", "a@", "a.b@", "Dr ", "Dr. ", "Jan 1", "1/", "http://", "12-", "of Dr St. "]


@pytest.mark.parametrize("matching", RULES)
def test_no_offset_of_a_text_full_of_anchors_is_tried_twice(matching):
    for unit in FULL_OF_SPOTS:
        text = unit * (1000 // len(unit))
        assert tried(matching, text) == everywhere(matching.pattern, text)
        starts = candidates(NoteView(text)).get(matching.number, ())
        assert list(starts) == sorted(set(starts)), unit


@pytest.mark.parametrize(
    "source",
    ["(?:ab){9}c", "(?:a|b){60}c", "[^a]\\d{2,40}x", "(?i:[^k])1", "(?<![^-])12", "a{0}12"],
)
def test_the_edges_of_a_match_are_supersets(source):
    pattern = re.compile(source)
    for text in (
        "ab" * 9 + "c",
        "ba" * 300 + "c",
        "b" + "1" * 39 + "x",
        "\u212a1k1",
        "-12 12",
        "12",
    ):
        assert tried(derived(pattern), text) == everywhere(pattern, text)


def test_a_match_begins_near_its_anchor():
    pattern = matcher(re.compile(r"[a-z]\w* *@"), Anchor(signs="@", within=FAR))
    near = "x" + "a" * (FAR - 2) + " @"
    far = "x" + "a" * FAR + "  @"
    assert tried(pattern, near) == [(0, len(near))]
    assert tried(pattern, far)[0][0] > 0
    digits = matcher(re.compile(r"\d-"), Anchor(digits=1))
    assert tried(digits, "1" * LONGEST_RUN + "-") == [(LONGEST_RUN - 1, LONGEST_RUN + 1)]
    assert tried(digits, "1" * (LONGEST_RUN + 1) + "-") == []


@pytest.mark.parametrize("unit", ["a", "1", "Ab ", "1/2 ", "a@", "St. ", "é", "J. ", "0-", "in "])
def test_a_line_of_100_000_characters_takes_no_square_of_the_time(unit):
    view = NoteView(unit * (10**5 // len(unit)))
    for detector in DETECTORS:
        list(detector.find(view))


def test_a_note_is_searched_once_for_all_detectors(monkeypatch):
    searched = []

    class Listing(matcher_module.AnchorTables):
        def starts(self, plain):
            searched.append(plain)
            return super().starts(plain)

    monkeypatch.setattr(matcher_module, "_anchors", matcher_module._Anchors())
    monkeypatch.setattr(matcher_module, "AnchorTables", Listing)
    matcher.cache_clear()
    copies = [pickle.loads(pickle.dumps(detector)) for detector in DETECTORS]
    note = NoteView(f"{'quokka' * 50} of Mercy")
    for detector in copies:
        list(detector.find(note))
    matcher.cache_clear()
    assert searched == [note.plain]
