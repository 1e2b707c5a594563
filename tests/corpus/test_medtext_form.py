"""MedText's form of one note: every rule of paper C's code on cases solved by hand, and what no
note may break.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import LABELS
from clinveil.corpus import DEIDENTIFIED, UNK, medtext, sentences
from clinveil.corpus.paper_c_form.form import Paragraph, paragraphs, tokens

FULL = "this line of the note is as full as can be"  # 42 characters


@pytest.mark.parametrize("number", ["1", "9", "10", "99"])
def test_a_list_entry_begins_a_paragraph(number):
    found = list(paragraphs(f"{FULL}\n{number}. aspirin\ndaily"))
    assert found == [Paragraph("", FULL, False), Paragraph(number, "aspirin daily", False)]


PUBLISHED = ["[**Name**]", "[**2118-6-2**]", "[**Hospital1 (un) 18**]", "[**a/b\\c-d**]"]
OTHER = ["[**Doe, J.**]", "[**#12**]", "[**O'Neil**]", "[**Known lastname &**]", "[****]"]


@pytest.mark.parametrize("tag", PUBLISHED)
@pytest.mark.parametrize("mode", ["all", "published"])
def test_tags_that_both_modes_replace(tag, mode):
    assert medtext(f"saw {tag} today", tags=mode) == f"saw {DEIDENTIFIED} today"


@pytest.mark.parametrize("tag", [*OTHER, "___", *(f"[{label}]" for label in LABELS)])
def test_tags_that_the_published_code_leaves(tag):
    assert medtext(f"saw {tag} today") == f"saw {DEIDENTIFIED} today"
    assert DEIDENTIFIED not in medtext(f"saw {tag} today", tags="published").split()


def test_tags_touch_words_and_lines():
    assert medtext("Dr.[**Name**]'s note") == f"Dr. {DEIDENTIFIED} 's note"
    assert medtext("at [**Hospital\n18**] today") == f"at {DEIDENTIFIED} today"
    assert medtext("a line ____ of _____ marks") == "a line ____ of _____ marks"
    assert medtext("a ___F with ___'s") == f"a {DEIDENTIFIED} F with {DEIDENTIFIED} 's"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He is well. She is not.", ["He is well .", "She is not ."]),
        ("He is well. she is not.", ["He is well . she is not ."]),
        ("Really?! Yes... No.", ["Really ? !", "Yes ... No ."]),
        ("BP: 120/80. Time: 10:30.", ["BP :", "120/80 .", "Time :", "10:30 ."]),
        ('He said "stop." Then left.', ['He said " stop . "', "Then left ."]),
        ('He fell. "I am fine." He left.', ["He fell .", '" I am fine . "', "He left ."]),
        ("(See below.) Then go.", ["( See below . )", "Then go ."]),
        ("Dr. Ann B. Smith vs. Mr. Jones", ["Dr. Ann B. Smith vs. Mr. Jones"]),
        (
            "Approx. 5 ml. No. 7. Smoker? No. Never.",
            ["Approx. 5 ml .", "No. 7 .", "Smoker ?", "No .", "Never ."],
        ),
        ("Take p.o. Q.I.D. with food, e.g. milk.", ["Take p.o. Q.I.D. with food , e.g. milk ."]),
        ("Given 2.5 mg. 3 doses.", ["Given 2.5 mg .", "3 doses ."]),
        (f"Seen. {DEIDENTIFIED} agreed.", ["Seen .", f"{DEIDENTIFIED} agreed ."]),
    ],
)
def test_sentence_borders(text, expected):
    assert [" ".join(row) for row in sentences(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't CAN'T isn’t", "do n't CA N'T is n’t"),
        ("patient's they've I'm she’ll he'd", "patient 's they 've I 'm she ’ll he 'd"),
        ("1,200 3.5 120/80 3/4/2011 10:30 98.6F", "1,200 3.5 120/80 3/4/2011 10:30 98.6 F"),
        ("x-ray q4h 50% w/o", "x - ray q4h 50 % w / o"),
        ("a--b ==== *** #1", "a -- b ==== *** # 1"),
        (
            "naïve Zoe\u0308 Қызыл 漢字 हिन्दी مُحَمَّد",
            "naïve Zoe\u0308 Қызыл 漢字 हिन्दी مُحَمَّد",
        ),
        ("5 µg ½ tab 37°C ≥3", "5 µg ½ tab 37 ° C ≥ 3"),
        ("soft\u00adhyphen zero\u200dwidth", "soft\u00adhyphen zero\u200dwidth"),
        (f"<unk> <eos> {DEIDENTIFIED}", f"< unk > < eos > {DEIDENTIFIED}"),
    ],
)
def test_tokens(text, expected):
    assert " ".join(tokens(text)) == expected


@pytest.mark.parametrize("note", ["", " ", "\n\n", "\t\r\n", "\u2028\x85\xa0", ">..<"])
def test_nothing_comes_of_nothing(note):
    assert medtext(note) == ""


def test_long_runs_take_their_time_and_no_more():
    # Each of these took the square of its length where a rule looked back, or tried again from
    # every place.
    for note in (
        ")" * 200_000,
        "1" * 200_000,
        "a" * 200_000,
        "'\"" * 100_000,
        "[**" * 60_000,
        ">" * 200_000,
        "_" * 10**5,
    ):
        assert "".join(medtext(note).split()) == note


ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
NOTE = st.one_of(ANY, st.text(st.sampled_from("aB1. :\n\"')(?[*]_<>-'\u0308\u2028é"), max_size=200))


@given(NOTE)
def test_tokens_lose_white_space_only(text):
    assert "".join(tokens(text)) == "".join(text.split())
    assert [token for row in sentences(text) for token in row] == tokens(text)


@given(NOTE, st.sampled_from(["all", "published"]))
def test_the_form_holds_for_any_text(text, tags):
    made = medtext(text, tags=tags)
    assert UNK not in made.split()
    for line in made.split("\n") if made else []:
        assert line == " ".join(line.split())
        assert line


@given(st.text(st.sampled_from("aB1,. \n\"')(?-é"), max_size=200))
def test_a_note_without_tags_loses_white_space_only(text):
    assert "".join(medtext(text).split()) == "".join(text.split())
