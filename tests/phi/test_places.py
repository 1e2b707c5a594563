"""Addresses and institutions of 12 countries, in invented notes (`places.py`)."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from places import notes

from clinveil.phi import Finder, PhiSettings

# States and provinces may stay.
STATES = set(
    ["VIC", "QLD", "NSW", "NT", "SA", "WA", "SK", "QC", "NS", "Ontario", "UP", "SP", "BA", "CEP"]
)


def needed(text, start, end):
    """The characters that must be covered: letters and digits, without small words and states."""
    words = (match for match in re.finditer(r"\w+", text[start:end]))
    kept = (m for m in words if m[0] not in STATES and not (m[0].islower() and m[0].isalpha()))
    return {start + offset for match in kept for offset in range(*match.span())}


@pytest.mark.parametrize("kind", ["address", "institution"])
def test_places_abroad_are_found(kind):
    finder = Finder.of(PhiSettings())
    count = Counter()
    found = Counter()
    for country, text, (start, end) in notes(kind):
        covered = {i for span in finder.find(text) for i in range(span.start, span.end)}
        count[country] += 1
        found[country] += needed(text, start, end) <= covered
    assert len(count) == 12
    assert {
        country: found[country] / n for country, n in count.items() if found[country] < 0.9 * n
    } == {}


@pytest.mark.parametrize(
    "text",
    [
        "Hospital Course: stable. Hospital Day 3. HOSPITAL COURSE unchanged.",
        "BP 110/70, HR 50, RR 14, Afebrile. Fusion at C5-C6, at the L1 level; ring at the LES.",
        "Mental Health follows. Seen in General Surgery, at Surgery, at Physical Therapy.",
        "Lives at home with Mother, Father and a dog. Block 12 was sent for histology.",
        "Nerve conduction at 12 Hz. In Phase 2, at Baseline, at Discharge.",
    ],
)
def test_what_is_no_place(text):
    labels = {"ADDRESS", "CITY", "ZIP", "HOSPITAL"}
    assert [
        text[s.start : s.end] for s in Finder.of(PhiSettings()).find(text) if s.label in labels
    ] == []
