"""Medicines, makers, tests and other things in positions where a name may stand."""

from __future__ import annotations

import pytest
from marked import marked_again, unmark

from clinveil.lexicons import is_word

THINGS = """
The rash should settle once Amoxil has taken effect.
Clozapine agrees with him. Escitalopram agrees with her.
His tuberculosis responded well to Rifadin.
Her eczema improved; Dr. {NAME:Okafor} gave Dupixent.
She came here in her Honda, with a plate from abroad.
He sold his Ford in spring.
Per the patient, winters are the worst. Winters are hard on her skin.
She carries a port (Abbott, s/n unreadable).
Health plan: Kaiser. Insurance: Blue Cross. Dr. {NAME:Cross} was paged.
Dear colleage,\\n\\nthank you for the referral.
Dr. {NAME:Robert Foster} performmed the biopsy.
SOCIAL AND FAMILY HISTORY: none. Dr. {NAME:Paul Family} was paged.
DRUG REACTIONS: Nome.
Her stimulator, a Boston Sci Vercise, was checked.
Sutures were placed as described by Rowland.
Staging after Okafor et al. was used.
She knew the president (Grant) and the year.
Urodynamics showed leakage. Spirometry showed obstruction.
Trembling began in June 2019.
Meals: NPO. Airway: LMA.
Her platelets rose on TPO and she was fed by NJ.
GGT was raised, TSH is low.
We will contact Dr. {NAME:X} (ID specialist).
He was referred by Dr. {NAME:X}.  Currently he is well.
I told her to cary dextrose tablets.
Pred Forte was stopped.
He was referred by Dr. {NAME:X}. I saw him today.
"""
PEOPLE = """
{NAME:Hope Bell} (born {DATE:3/4/1950}) was seen.
{NAME:Burn Hugh Gorman} ({DATE:1 September 1920} - {DATE:3 May 1998}) was a farmer.
We discussed it with Dr. {NAME:Okafor}; {NAME:Okafor}'s advice was rest.
Emergency contact: {NAME:Okafor}.
Seen by {NAME:Lindqvist} and {NAME:Okafor} in clinic.
Dear {NAME:Binta}, thank you for coming.
"""
SURNAMES = [
    "Maximus",
    "Hefferon",
    "Guidone",
    "Bartolone",
    "McGuinness",
    "Cantrel",
    "Okafor",
    "Lindqvist",
]
MEDICINES = ["celecoxib", "empagliflozin", "nirmatrelvir", "ustekinumab", "soriatane", "imbruvica"]


def lines(block):
    return [line.replace("\\n", "\n") for line in block.strip().splitlines()]


@pytest.mark.parametrize("marked", lines(THINGS) + lines(PEOPLE))
def test_only_the_person_is_found(finder, marked):
    text, _ = unmark(marked)
    spans = [(s.start, s.end, s.label) for s in finder.find(text, "p")]
    names = [span for span in spans if span[2] == "NAME"]
    dates = [span for span in spans if span[2] == "DATE"] if "{DATE" in marked else []
    assert marked_again(text, sorted(names + dates)) == marked


@pytest.mark.parametrize("word", MEDICINES)
def test_a_medicine_is_a_word(word):
    assert is_word(word)


@pytest.mark.parametrize("name", SURNAMES)
def test_a_surname_with_an_ending_of_medicines_is_none(name):
    assert not is_word(name.lower())


def test_a_scale_named_after_a_university_is_no_hospital(finder):
    assert not list(finder.find("Her gait was graded by the Emory Ambulation Scale.", "p"))
