"""Names in sentence frames that no part of clinveil was trained on, and frames without names."""

from __future__ import annotations

import re

import frames
import pytest

from tagger_training.invent import templates

_SLOT = re.compile(r"\{\w+\}")
_OTHER = re.compile(r"[^a-z]+")


def skeleton(frame):
    """The words of a frame without its slots and signs."""
    return _OTHER.sub(" ", _SLOT.sub(" ", frame).lower()).strip()


def test_no_frame_of_the_tests_is_trained_on():
    trained = {
        skeleton(line) for name in ("templates", "prose", "negatives") for line in templates(name)
    }
    tested = [line for name in ("names", "none") for line in frames.lines(name)]
    assert len(templates("prose")) + len(frames.lines("names")) >= 150
    assert not [
        line for line in tested if len(skeleton(line).split()) > 2 and skeleton(line) in trained
    ]


@pytest.mark.parametrize(("measure", "least"), [("full", 0.985), ("word", 0.96), ("last", 0.85)])
def test_names_in_new_frames_are_found(finder, measure, least):
    found = count = 0
    for kind in frames.KINDS[measure]:
        for text, names in frames.cases(measure, kind):
            covered = {i for span in finder.find(text, "p") for i in range(span.start, span.end)}
            count += len(names)
            found += sum(
                covered.issuperset(i for i in range(*name) if text[i].isalnum()) for name in names
            )
    assert count > 500 and found / count >= least


def test_frames_without_a_name_are_left_alone(finder):
    touched = [
        line
        for line in frames.lines("none")
        if any(s.label == "NAME" for s in finder.find(line, "p"))
    ]
    assert len(touched) <= 2, touched
