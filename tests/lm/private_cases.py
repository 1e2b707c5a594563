"""A small public text, and private notes of invented patients."""

from __future__ import annotations

from clinveil.lm import LabelledNote, PublicText

# specific words of the two labels
FIRST = ("alpha", "beta")
SECOND = ("gamma", "delta")
COMMON = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(150)]


def public_text(more=()):
    rare = [f"A word is {word}." for word in [*FIRST, *SECOND]]
    return PublicText.of([*(" ".join(COMMON) + "." for _ in range(20)), *rare, *rare, *more])


def notes_of(patients, *, first=0, more=""):
    """Two notes of each patient, of alternating labels."""
    return [
        LabelledNote(f"p{i}", i % 2, f"{own[0]} {own[1]} {own[0]} {COMMON[i % 150]} {more}")
        for i in range(first, first + patients)
        for own in [(FIRST, SECOND)[i % 2]] * 2
    ]
