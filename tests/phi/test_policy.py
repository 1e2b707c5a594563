"""Every label has a treatment in every mode."""

from __future__ import annotations

import pytest

from clinveil.core.errors import UsageError
from clinveil.core.keys import Key
from clinveil.core.spans import LABELS
from clinveil.phi.policy import Treatment, tag, treatment
from clinveil.phi.surrogates import Surrogates

EXAMPLES = {
    "NAME": "Smith",
    "ADDRESS": "12 Oak Street",
    "CITY": "Boston",
    "ZIP": "02114",
    "HOSPITAL": "Mercy Hospital",
    "DATE": "3/4/2019",
    "AGE": "94",
    "PHONE": "617-555-0199",
    "FAX": "617-555-0100",
    "EMAIL": "a@b.org",
    "SSN": "536-22-1234",
    "MRN": "1234567",
    "HEALTH_PLAN": "X12345",
    "ACCOUNT": "9318",
    "LICENSE": "D123",
    "VEHICLE": "ABC 123",
    "DEVICE": "77X8",
    "URL": "www.x.org",
    "IP": "10.0.0.1",
    "ID": "S19-12345",
}


@pytest.mark.parametrize("mode", ["remove", "replace", "tag"])
@pytest.mark.parametrize("label", sorted(LABELS))
def test_total(label, mode):
    assert isinstance(treatment(label, mode), Treatment)


def test_what_the_modes_do():
    assert treatment("NAME", "remove") is Treatment.NOTHING
    assert treatment("NAME", "tag") is Treatment.TAG
    assert treatment("NAME", "replace") is Treatment.SURROGATE
    assert treatment("PHOTO", "replace") is Treatment.TAG
    assert tag("NAME") == "[NAME]"


@pytest.mark.parametrize(("label", "mode"), [("NONSENSE", "tag"), ("NAME", "keep"), ("", "remove")])
def test_nothing_is_kept_by_mistake(label, mode):
    with pytest.raises(UsageError):
        treatment(label, mode)


@pytest.mark.parametrize(
    "label", sorted(label for label in LABELS if treatment(label, "replace") is Treatment.SURROGATE)
)
def test_every_label_that_wants_a_surrogate_has_a_maker(label):
    made = Surrogates(Key.from_seed(1)).make(label, EXAMPLES[label], "p1")
    assert made
    assert made != EXAMPLES[label]


def test_a_label_without_maker_gives_none():
    assert Surrogates(Key.from_seed(1)).make("PHOTO", "face.jpg", "p1") is None
