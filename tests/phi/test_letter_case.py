"""Places and institutions in capitals and in lower case, compared with the same sentences as
written.
"""

from __future__ import annotations

import pytest

from clinveil.phi.detection.letter_case import recased

SENTENCES = (
    "She was seen at Mercy General Hospital last week.",
    "Transferred from St. Vincent's Hospital to our unit.",
    "He lives in Tucson with his wife.",
    "They moved to Kalamazoo in spring.",
    "He was born in Faversham and works as a mason.",
    "Born and raised in Chicago, he came here alone.",
    "Seen at Cedar Crest for a check.",
    "The patient was admitted to Elm Grove Clinic with fever.",
    "He works at Walmart as a clerk.",
    "She attends Lincoln High School.",
    "Mail goes to 14 Acacia Avenue, Leeds.",
    "He lives at 123 Oak Street, Boston, MA 02114.",
    "Followed at the University of Denver for years.",
    "She came from Wichita, Kansas, by bus.",
    "Referred by the Mayo Clinic in Rochester.",
    "Treated at Cedars-Sinai in Los Angeles.",
    "Her son lives near San Antonio.",
    "Surgery was done at Johns Hopkins Hospital.",
    "He was taken to Boston Medical Center by ambulance.",
    "Admitted from Willow Creek Nursing Home on Friday.",
)
PLACES = {"HOSPITAL", "CITY", "ADDRESS", "ZIP"}


@pytest.mark.parametrize("change", [str.upper, str.lower])
def test_places_are_found_without_letter_case(finder, change):
    found = count = 0
    for sentence in SENTENCES:
        spans = [span for span in finder.find(sentence) if span.label in PLACES]
        changed = change(sentence)
        covered = {i for span in finder.find(changed) for i in range(span.start, span.end)}
        count += len(spans)
        found += sum(covered.issuperset(range(span.start, span.end)) for span in spans)
    assert count > 20 and found >= 0.9 * count


@pytest.mark.parametrize(
    "text",
    [
        "PATIENT TOLERATED THE PROCEDURE WELL AND WAS SENT TO RECOVERY IN STABLE CONDITION.",
        "HISTORY OF PRESENT ILLNESS:\nHe had pain in the left knee at rest.",
        "the wound was closed in layers and dressed. no fever at night. follow up in the clinic.",
        "SEEN IN THE EMERGENCY DEPARTMENT. HOME WITH MEDICAL EQUIPMENT FROM THE PHARMACY.",
    ],
)
def test_other_text_without_letter_case_is_left_alone(finder, text):
    assert [text[s.start : s.end] for s in finder.find(text) if s.label in PLACES] == []


def test_text_in_usual_case_is_not_copied():
    assert recased("She was seen at Mercy Hospital.\nHe lives in Tucson, and works there.") is None
    copy = recased("Plan: home.\nLIVES IN TUCSON WITH HIS WIFE.")
    assert (
        copy is not None and "Tucson" in copy.text and copy.source(copy.text.index("Tucson")) == 21
    )
