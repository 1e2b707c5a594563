"""Union, vote and recall-first; forms of names; known patients by nickname, initials and user name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core.keys import Key
from clinveil.core.load_settings import load_settings
from clinveil.core.spans import Span
from clinveil.corpus.corpus import memory_corpus
from clinveil.corpus.people import Patient
from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.lexicons.names import name_form, nicknames
from clinveil.phi.detection.combine import agreed, off_list
from clinveil.phi.detection.detector import Rule, RuleDetector, detectors
from clinveil.phi.detection.finder import Finder
from clinveil.phi.detection.note import NoteView
from clinveil.phi.name_variants import MISSPELT, NICKNAME, OWN, USER_NAME, NameVariants, is_near
from clinveil.phi.settings import PhiSettings
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.passes import deidentify_corpus
from clinveil.scale import serial

KEY = Key.from_seed(5)
PIECES = ["J", "M", "L", "JM", "ML", ".", " ", "\t", "with ", "By ", "PER ", "\n", "a"]
TEXTS = st.lists(st.sampled_from(PIECES)).map("".join)
WORDS = ("billy", "lee", "o'shea", "wiliam", "annie", "okwuoza", "reyes-lee", "wokwuosareyes", "pain", "van")


def tagged(text, patients=None, **settings):
    engine = Deidentifier.of(load_settings(PhiSettings, {"mode": "tag", **settings}), KEY, patients=patients)
    return engine.treat(text, engine.find(text, "p"), "p")[0]


class TestVote:
    SPANS = (
        Span(0, 5, "NAME", "names", 0.6),
        Span(2, 9, "NAME", "tagger", 0.5),
        Span(20, 25, "NAME", "names", 0.6),
        Span(20, 25, "NAME", "names", 0.7),
        Span(30, 35, "DATE", "dates", 0.9),
    )

    def test_two_agree_or_one_is_sure(self):
        assert agreed(self.SPANS, 2) == [self.SPANS[0], self.SPANS[1], self.SPANS[4]]

    def test_one_vote_is_union_and_three_are_none(self):
        assert agreed(self.SPANS, 1) == sorted(self.SPANS)
        assert agreed(self.SPANS, 3) == [self.SPANS[4]]

    def test_by_a_finder(self):
        weak = [_rule(name, r"Kat\w+", 0.6) for name in ("one", "two")]
        sure = _rule("three", "Zwi", 0.9)
        text = "Katherine met Zwi."
        for some, want in {(weak[0], sure): 1, (*weak, sure): 2, (weak[0],): 0}.items():
            assert len(Finder(some, combine="vote").find(text)) == want
        settings = load_settings(PhiSettings, {"find": "vote", "votes": 3})
        assert (Finder.of(settings).combine, Finder.of(settings).votes) == ("vote", 3)


def _rule(name, pattern, score):
    return RuleDetector(name, (Rule("NAME", re.compile(pattern), "", score),))


class TestRecallFirst:
    def test_what_is_no_clinical_word_goes_however_it_is_written(self):
        text = "Then zwiyemi and Xanthippos took aspirin; the Foley drains. White told White cells."
        assert tagged(text, find="recall-first").startswith("Then [NAME] and [NAME] took aspirin; the ")

    @pytest.mark.parametrize(
        "text", ["Rose told of pain.", "PAST HISTORY: Pain", "- May resume diet", "Young Adult Clinic"]
    )
    def test_a_capital_at_the_start_of_a_sentence_or_in_a_heading_says_nothing(self, text):
        assert [span for span in off_list(NoteView(text), frozenset()) if span.start == 0] == []

    def test_a_usual_name_within_a_sentence_goes(self):
        (span,) = off_list(NoteView("we spoke to Rose again"), frozenset())
        assert (span.start, span.end) == (12, 16)

    def test_words_of_many_patients_are_vocabulary_and_names_are_not(self):
        words = [(f"n{i}", f"p{i}", "given xyzzomab and john zwiyemi came") for i in range(4)]
        words += [
            ("n9", "p9", "given xyzzomab with plughine; john"),
            ("n10", "p1", "plughine"),
            ("n11", "p2", "plughine"),
        ]
        settings = load_settings(PhiSettings, {"mode": "tag", "find": "recall-first"})
        (done,) = deidentify_corpus(memory_corpus(words), Deidentifier.of(settings, KEY), serial)
        out = done.batch["text"].to_pylist()
        assert out[4] == "given xyzzomab with [NAME]; [NAME]"  # three patients have plughine, five xyzzomab


class TestForms:
    FORMS = NameVariants.of(("William", "Henry", "van", "Okwuosa-Reyes"), ("Ann", "Lee"))

    @pytest.mark.parametrize(
        ("word", "why"),
        [
            *[
                (word, OWN)
                for word in ("william", "henry", "okwuosa-reyes", "okwuosa", "reyes", "lee", "okwousa-reyes")
            ],
            *[(word, NICKNAME) for word in ("billy", "will", "hank", "annie")],
            *[(word, MISSPELT) for word in ("wiliam", "okwuoza", "okwuasareys")],
            *[(word, USER_NAME) for word in ("wokwuosareyes", "williamokwuosareyes")],
            *[(word, "") for word in ("van", "wills", "lea", "patient", "maria", "okapi", "")],
        ],
    )
    def test_why(self, word, why):
        assert self.FORMS.why(word) == why

    def test_two_edits_need_nine_letters_and_the_same_beginning(self):
        assert is_near("okwuosareys", "okwuosareyes")
        assert is_near("okwuozareys", "okwuosareyes")
        assert not is_near("kwuozareyes", "okwuosareyes")
        assert not is_near("hendrysn", "henderso")

    @given(st.text("abcde", min_size=4, max_size=11), st.text("abcde", min_size=4, max_size=11))
    def test_no_misspelling_is_missed(self, form, own):
        """By all names one after the other: what looking at beginnings and endings alone must find."""
        assert (NameVariants([(own,)]).misspelt(form) is not None) == (is_near(form, own) and not _is_other(form))

    @given(st.permutations(("john", "maria", "li", "o'shea", "van", "mary-jo")), TEXTS)
    def test_initials_are_those_of_a_pattern(self, name, text):
        for bare in (False, True):
            forms = NameVariants([tuple(name[:3]), ("jo", "moss")])
            want = [match.span() for match in _initials_of(forms.initials, bare).finditer(text)]
            assert forms.initialled(text, bare=bare) == want

    @given(st.sets(st.sampled_from(WORDS)))
    def test_many_words_at_once_are_each_by_itself(self, words):
        assert self.FORMS.among(words) == {word: why for word in words if (why := self.FORMS.why(word))}

    def test_nicknames_go_both_ways(self):
        assert {"billy", "bill", "will"} <= nicknames()["william"]
        assert "william" in nicknames()["billy"]
        assert all(name_form(form) == form and form not in others for form, others in nicknames().items())


def _is_other(form):
    return bool(lexical_classes(form) & (LexicalClass.WORD | LexicalClass.USUAL_GIVEN | LexicalClass.EPONYM))


def _initials_of(initials, bare):
    """A pattern of these people's own: slow to compile, and plain."""
    every = [letters.upper() for letters in sorted(initials)]
    dotted = "|".join(r"\.[ \t]?".join(letters) + r"(?:\.|(?=[^\w.]|$))" for letters in every)
    tight = "".join(rf"|(?<=\b{word} )(?:{'|'.join(every)})\b" for word in ("with", "By", "PER", "for")) if bare else ""
    return re.compile(rf"(?<![\w.])(?:{dotted})(?!\w){tight}")


FEED = {"p": Patient("p", ("William", "John", "van", "Zwiyemi"), emails=("wjzwi42x@home.example",))}


class TestKnownPatients:
    @pytest.mark.parametrize(
        ("text", "want"),
        [
            ("told Billy to rest", "told [NAME] to rest"),
            ("billy rests", "[NAME] rests"),
            ("spoke with will by phone", "spoke with [NAME] by phone"),
            ("Will rest; will rest", "Will rest; will rest"),
            ("Will Zwiyemi rests", "[NAME] [NAME] rests"),
            ("discussed with W.Z. today", "discussed with [NAME] today"),
            ("reviewed with WZ today", "reviewed with [NAME] today"),
            ("the WZ sign", "the WZ sign"),
            ("ZWIYEMI, WILLIAM", "[NAME], [NAME]"),
            ("W. van Zwiyemi", "[NAME]"),
            ("a van came", "a van came"),
            ("user wzwiyemi12 logged in", "user [NAME] logged in"),
            ("by wjzwi42x at noon", "by [EMAIL] at noon"),
            ("Zwyiemi and zwiyem", "[NAME] and [NAME]"),
        ],
    )
    def test_each_form(self, text, want):
        finder = Finder([detectors.get("known")], patients=FEED)
        engine = Deidentifier(KEY, mode="tag").with_finder(finder)
        assert engine.treat(text, engine.find(text, "p"), "p")[0] == want
