"""A pattern is tried only where it can match: whatever pattern and text, nothing is lost and
nothing is added.
"""

from __future__ import annotations

import pickle
import re
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clinveil.phi.detection.detector import RuleDetector, all_detectors
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching import matcher as matcher_module
from clinveil.phi.matching.anchors import NOTHING, Anchor, mask, required
from clinveil.phi.matching.matcher import FARTHEST, LONGEST_RUN, candidates, matcher

RULES = [
    pytest.param(rule.pattern, id=f"{detector.name}-{number}")
    for detector in all_detectors()
    if isinstance(detector, RuleDetector)
    for number, rule in enumerate(detector.rules)
]


def tried(pattern, text):
    """The places that the pattern is found at, with its filter; the text is taken as it is."""
    view = NoteView(text)
    view.__dict__["plain"] = text
    return [match.span() for match in matcher(pattern).matches(view)]


def everywhere(pattern, text):
    """The same without a filter."""
    return [match.span() for match in pattern.finditer(text)]


# What a generator of strings cannot plan for.
ASSERTIONS = re.compile(r"\(\?(?:<?!|=)[^()]*\)")


def like(pattern):
    """Strings that match a pattern, or nearly."""
    source = pattern.pattern if ")]" in pattern.pattern else ASSERTIONS.sub("", pattern.pattern)
    return st.from_regex(re.compile(source, pattern.flags)).filter(
        lambda text: len(text) < FARTHEST
    )


NEIGHBOURS = st.text("aA1-./ \n,:'(é\u0130ſ", max_size=6)
FILLING = st.sampled_from(
    ["", " ", "\n", ". The ", " in 12 / 3 ", "St. ", " 03-", "x", ", MA 02114 ", "Dr. Hill of "]
)


@pytest.mark.parametrize("pattern", RULES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_a_filter_changes_no_result_of_a_rule(pattern, data):
    found = data.draw(st.lists(like(pattern), min_size=1, max_size=2))
    text = "".join(
        data.draw(FILLING) + data.draw(NEIGHBOURS) + one + data.draw(NEIGHBOURS) for one in found
    )
    for shape in (text, text.upper(), text.lower()):
        assert tried(pattern, shape) == everywhere(pattern, shape)


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
        assert tried(pattern, text) == everywhere(pattern, text)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(source=PATTERNS, group=PATTERNS, texts=st.lists(TEXTS, min_size=3, max_size=6))
def test_a_pattern_may_refer_to_what_it_found(source, group, texts):
    pattern = re.compile(rf"({group})-?\1{source}")
    for text in texts:
        assert tried(pattern, text) == everywhere(pattern, text)


def anchored(source, flags=0):
    return required(re.compile(source, flags)).anchor


def test_a_filter_is_the_rarest_thing_that_must_be_there():
    assert anchored(r"\bchart\s*:\s*\d+", re.I) == Anchor(NOTHING, frozenset({"|chart"}))
    assert anchored(r"(?:fax|phone)\s(?:no\.)?").strings == {"fax|", "phone|"}
    assert anchored(r"(?<!\d)\d{3}-\d{2}-\d{4}").digits >= 3
    assert anchored(r"[\w.]+@\w+").signs == mask("@")


def test_there_is_no_filter_where_nothing_must_be_there():
    assert anchored(r"\w*\s?") is None
    assert anchored(r"(?:a|)b?") is None
    assert anchored(r".*") is None


def test_most_rules_have_a_filter():
    assert all(required(param.values[0]).anchor is not None for param in RULES)


def test_the_letters_that_fold_to_ascii_ones_are_all_known():
    letter = re.compile("[a-z]", re.IGNORECASE)
    found = {chr(code) for code in range(128, sys.maxunicode + 1) if letter.fullmatch(chr(code))}
    assert found == set("\u0130\u0131\u017f\u212a")
    for odd in found:
        assert tried(
            re.compile("task in", re.I), f"ta{odd}k in {odd}n tas{odd} in task {odd}n"
        ) == everywhere(re.compile("task in", re.I), f"ta{odd}k in {odd}n tas{odd} in task {odd}n")


def test_a_pattern_that_is_new_is_found_in_a_note_that_was_read_before():
    view = NoteView("the quokka and the numbat")
    assert list(matcher(re.compile("numbat")).matches(view))
    assert [m.span() for m in matcher(re.compile("quokk[a]")).matches(view)] == [(4, 10)]


FULL_OF_SPOTS = ["@", "a@", "a.b@", "Dr ", "Dr. ", "Jan 1", "1/", "http://", "12-", "of Dr St. "]


@pytest.mark.parametrize("pattern", RULES)
def test_no_offset_of_a_text_full_of_anchors_is_tried_twice(pattern):
    for one in FULL_OF_SPOTS:
        text = one * (1000 // len(one))
        assert tried(pattern, text) == everywhere(pattern, text)
        starts = candidates(NoteView(text)).get(matcher(pattern).number, ())
        assert list(starts) == sorted(set(starts)), one


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
        assert tried(pattern, text) == everywhere(pattern, text)


def test_a_match_begins_near_its_anchor():
    pattern = re.compile(r"[a-z]\w* *@")
    near = "x" + "a" * (FARTHEST - 2) + " @"
    far = "x" + "a" * FARTHEST + "  @"
    assert tried(pattern, near) == [(0, len(near))]
    assert tried(pattern, far)[0][0] > 0
    digits = re.compile(r"\d-")
    assert tried(digits, "1" * LONGEST_RUN + "-") == [(LONGEST_RUN - 1, LONGEST_RUN + 1)]
    assert tried(digits, "1" * (LONGEST_RUN + 1) + "-") == []


@pytest.mark.parametrize("unit", ["a", "1", "Ab ", "1/2 ", "a@", "St. ", "é", "J. ", "0-", "in "])
def test_a_line_of_100_000_characters_takes_no_square_of_the_time(unit):
    view = NoteView(unit * (10**5 // len(unit)))
    for detector in all_detectors():
        if isinstance(detector, RuleDetector):
            list(detector.find(view))


def test_a_note_is_searched_once_for_all_detectors(monkeypatch):
    searched = []

    class Listing(matcher_module.Tables):
        def starts(self, note):
            searched.append(note.plain)
            return super().starts(note)

    monkeypatch.setattr(matcher_module, "_anchors", matcher_module._Anchors())
    monkeypatch.setattr(matcher_module, "Tables", Listing)
    matcher.cache_clear()
    copies = [
        pickle.loads(pickle.dumps(detector)) for detector in all_detectors()
    ]  # as a worker gets them
    note = NoteView(f"{'quokka' * 50} of Mercy")
    for detector in copies:
        list(detector.find(note))
    matcher.cache_clear()
    assert searched == [note.plain]
