"""Kinds of mention that were missed once, each with what says that a name stands there; no name is
a held-out one.
"""

from __future__ import annotations

import re

import pytest
from marked import unmark

from clinveil.core import Span
from clinveil.lexicons import LexicalClass, held_out, is_word, lexical_classes
from clinveil.phi import Finder, TaggerDetector

KINDS = {
    "fields": r"""
Family name on file: {NAME:Abbott}.
Surname at birth: {NAME:Fenn}
family name on file: {NAME:okoye}.
Last name: {NAME:Moss}
Name (last, first): {NAME:Quarry, Esteban}\nWeight 71 kg
Primary care: {NAME:Fisher, M.}\nDiet: as tolerated
PRIMARY CARE: {NAME:OKOYE, A.}\nDIET: AS TOLERATED
primary care: {NAME:okoye, a.}\ndiet: as tolerated
ordering provider: {NAME:okoye, binta}, do
pt_last={NAME:Okoye};pt_first={NAME:Binta};ward=ICU
Order entered by user {NAME:bokoye} at 08:15.
""",
    "mail": r"""
From: {NAME:Binta Okoye}\nSubject: biopsy
To: {NAME:Binta Okoye}\nFrom: {NAME:Esteban Fisher}
Copy to: {NAME:Yusuf Razak}\nCopy sent by fax.
""",
    "lists": r"""
Care team: {NAME:Anna Fisher, Joe Fisher} and {NAME:Anna Okoye}.
care team: {NAME:binta okoye}, {NAME:joe okoye} and {NAME:anna okoye}.
Rounds: {NAME:Okoye} (bed 3) stable; {NAME:Moss} (bed 7) febrile.
Rounds: {NAME:de la Fisher} (room 12) stable.
Present at the meeting:\n- {NAME:binta okoye}, rn\n- {NAME:omar moss}, msw\ngoals reviewed
cc: dr. {NAME:anna fisher}; {NAME:binta okoye}, dpm
I spoke with drs. {NAME:fisher} and {NAME:okoye} about it.
I spoke with Drs. {NAME:Okoye} and {NAME:Bush} about it.
""",
    "narrative": r"""
Spoke to {NAME:binta} by phone about the results.
consent was obtained from ({NAME:binta okoye}) before it.
per {NAME:binta okoye} from social work, placement is pending.
per {NAME:binta okoyelan} from social work.
we reviewed {NAME:binta okoye}'s films together.
{NAME:okoye}'s wife called.
{NAME:OKOYE}'S WIFE CALLED.
Saw {NAME:Okoye} this morning.
his brother, {NAME:binta sun}, is at the bedside.
this letter concerns {NAME:mingwei su}, a 71 y/o male with gout.
""",
    "words at a name's end": r"""
Patient: {NAME:Weimin An}\nUnit: 5 West
Seen with {NAME:Weimin He}, PA.
{NAME:WEIMIN HE} IS A 47-YEAR-OLD MAN.
Dr. {NAME:Binta Okra} was paged.
Mr. {NAME:Yusuf Mat Said} was seen.
MR. {NAME:YUSUF SUN} WAS SEEN.
PT: {NAME:YUSUF MAT SAID}  POSITION: SUPINE
His sister {NAME:Binta Ledger} called.
Attending: {NAME:Sung-hoon Park}, MD
{NAME:SUNG-HOON SUN}, MSW\nGOALS WERE SET
care team: {NAME:binta do}, {NAME:binta okoye}.
""",
    "particles and quotes": r"""
{NAME:Jean de Lorval} was seen.
Patient: {NAME:Donal Mac an Bhaird}\nUnit: 5 West
{NAME:Paul "Bud" Crumb} was seen.
{NAME:Paul de La Lormel} was seen.
""",
    "later mentions": r"""
{NAME:Paul Archibald Howell} came. {NAME:Howell}'s other films were seen.
Name: {NAME:su, mingwei}\nOn day two {NAME:mingwei su} ate a full diet.
Patient: {NAME:JOHN REED}\nCOURSE: WELL. {NAME:REED} WALKED THE HALL.
""",
}
LINES = [
    (kind, line.replace("\\n", "\n"))
    for kind, lines in KINDS.items()
    for line in lines.strip().splitlines()
]


@pytest.fixture(scope="module")
def finder():
    return Finder()


def covered_again(finder, marked):
    """The text of a line, and what of its letters and digits is marked and what is found."""
    text, truth = unmark(marked)
    gold = {at for start, end, _ in truth for at in range(start, end) if text[at].isalnum()}
    found = {at for s in finder.find(text) for at in range(s.start, s.end) if text[at].isalnum()}
    return text, gold, found


@pytest.mark.parametrize(
    ("kind", "line"), LINES, ids=[f"{kind}: {line[:40]!r}" for kind, line in LINES]
)
def test_all_that_is_marked_is_found_and_nothing_else(finder, kind, line):
    text, gold, found = covered_again(finder, line)
    assert "".join(c if at in found else "_" for at, c in enumerate(text)) == "".join(
        c if at in gold else "_" for at, c in enumerate(text)
    )


def test_no_name_of_these_lines_is_held_out():
    names = {
        word
        for _, line in LINES
        for name in re.findall(r"{NAME:([^}]*)}", line)
        for word in name.split()
    }
    assert not {name for name in names if len(name.strip(",.")) > 2 and held_out(name.strip(",."))}


NO_NAMES = r"""
To: ICU\nFrom: home\nTransfer to: rehab
Wound care: clean. Plan of care: continue.
Present: yes. Team: medicine. Rounds: stable (bed rest).
ICU (bed 3) is full.
Entered by user interface.
He will pick her up. WILL PICK UP TODAY. will pick up today.
She works for Maier Foods and saw Cardiology. Updated Allergies.
per cardiology, no change; per protocol; with clostridium difficile
The patient's films, chart and labs were reviewed.
The mother's wife. Patient's family agrees. Parkinson's early onset.
DR. JONES SAW HIM TODAY
"""


@pytest.mark.parametrize("line", NO_NAMES.strip().splitlines())
def test_what_stands_at_the_same_cues_and_is_no_name_stays(finder, line):
    text = line.replace("\\n", "\n")
    found = [text[s.start : s.end] for s in finder.find(text) if s.label == "NAME"]
    assert found in ([], ["JONES"])


@pytest.mark.parametrize("text", ["A Bierman needle was placed.", "seen by the Okoye family"])
def test_the_tagger_takes_no_article(text):
    from clinveil.phi import NoteView

    spans: list[Span] = list(TaggerDetector().find(NoteView(text)))
    assert not [
        span for span in spans if text[span.start : span.end].split()[0].lower() in ("a", "the")
    ]


def test_syllables_make_a_given_name_and_short_endings_make_no_word():
    assert lexical_classes("Sung-hoon") & LexicalClass.GIVEN
    assert not lexical_classes("Sung-hoon") & LexicalClass.WORD
    assert not lexical_classes("so-so") & LexicalClass.GIVEN
    assert is_word("bony")
    assert is_word("taller")
    assert not is_word("gigal")
