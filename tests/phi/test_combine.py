"""Recall first; forms of names; known patients by nickname, initials and user name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import Key
from clinveil.corpus import Patient, memory_corpus
from clinveil.lexicons import LexicalClass, lexical_classes, name_form, nicknames
from clinveil.phi import Finder, NoteDeidentifier, NoteView, deidentify_corpus
from clinveil.phi.detection.detectors.known import KNOWN
from clinveil.phi.detection.finder import off_list
from clinveil.phi.name_variants import (
    EXACT_NAME,
    MISSPELT,
    NICKNAME,
    USER_NAME,
    NameVariants,
    is_near,
)
from clinveil.scale import serial

KEY = Key.from_seed(5)
PIECES = ["J", "M", "L", "JM", "ML", ".", " ", "\t", "with ", "By ", "PER ", "\n", "a"]
TEXTS = st.lists(st.sampled_from(PIECES)).map("".join)
WORDS = (
    "billy",
    "lee",
    "o'shea",
    "wiliam",
    "annie",
    "okwuoza",
    "reyes-lee",
    "wokwuosareyes",
    "pain",
    "van",
)


ENGINE = NoteDeidentifier(KEY, mode="tag")
RECALL_FIRST = ENGINE.with_finder(Finder(recall_first=True))


class TestRecallFirst:
    def test_what_is_no_clinical_word_goes_however_it_is_written(self):
        text = "Then zwiyemi and Xanthippos took aspirin; the Foley drains. White told White cells."
        out = RECALL_FIRST.treat(text, RECALL_FIRST.find(text, "p"), "p")[0]
        assert out.startswith("Then [NAME] and [NAME] took aspirin; the ")

    @pytest.mark.parametrize(
        "text",
        ["Rose told of pain.", "PAST HISTORY: Pain", "- May resume diet", "Young Adult Clinic"],
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
        (done,) = deidentify_corpus(memory_corpus(words), RECALL_FIRST, serial)
        out = done.batch["text"].to_pylist()
        assert (
            out[4] == "given xyzzomab with [NAME]; [NAME]"
        )  # three patients have plughine, five xyzzomab


class TestForms:
    FORMS = NameVariants.of(("William", "Henry", "van", "Okwuosa-Reyes"), ("Ann", "Lee"))

    @pytest.mark.parametrize(
        ("word", "why"),
        [
            *[
                (word, EXACT_NAME)
                for word in (
                    "william",
                    "henry",
                    "okwuosa-reyes",
                    "okwuosa",
                    "reyes",
                    "lee",
                    "okwousa-reyes",
                )
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
        """By all names one after the other: what looking at beginnings and endings alone must
        find.
        """
        assert (NameVariants([(own,)]).misspelt(form) is not None) == (
            is_near(form, own) and not _is_other(form)
        )

    @given(st.permutations(("john", "maria", "li", "o'shea", "van", "mary-jo")), TEXTS)
    def test_initials_are_those_of_a_pattern(self, name, text):
        for bare in (False, True):
            forms = NameVariants([tuple(name[:3]), ("jo", "moss")])
            want = [match.span() for match in _initials_of(forms.initials, bare).finditer(text)]
            assert forms.initialled(text, bare=bare) == want

    @given(st.sets(st.sampled_from(WORDS)))
    def test_many_words_at_once_are_each_by_itself(self, words):
        assert self.FORMS.among(words) == {
            word: why for word in words if (why := self.FORMS.why(word))
        }

    def test_nicknames_go_both_ways(self):
        assert {"billy", "bill", "will"} <= nicknames()["william"]
        assert "william" in nicknames()["billy"]
        assert all(
            name_form(form) == form and form not in others for form, others in nicknames().items()
        )


def _is_other(form):
    return bool(
        lexical_classes(form) & (LexicalClass.WORD | LexicalClass.USUAL_GIVEN | LexicalClass.EPONYM)
    )


def _initials_of(initials, bare):
    """A pattern of these people's own: slow to compile, and plain."""
    every = [letters.upper() for letters in sorted(initials)]
    dotted = "|".join(r"\.[ \t]?".join(letters) + r"(?:\.|(?=[^\w.]|$))" for letters in every)
    tight = (
        "".join(rf"|(?<=\b{word} )(?:{'|'.join(every)})\b" for word in ("with", "By", "PER", "for"))
        if bare
        else ""
    )
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
        finder = Finder([KNOWN], patients=FEED)
        engine = ENGINE.with_finder(finder)
        assert engine.treat(text, engine.find(text, "p"), "p")[0] == want
