"""Towns that are words, in the position of a place, and the full stop after a street."""

from __future__ import annotations

import pytest
from marked import marked_again, unmark

TOWNS = """
Last winter they moved to {CITY:Hope} with the dogs.
The patient is from {CITY:Normal}.
Mrs. {NAME:Okafor} is from {CITY:Liberty}, and her son farms.
He was born in {CITY:Orange} and raised in {CITY:Bath}.
A man from {CITY:Defiance} fell off a ladder.
Originally from {CITY:Sandwich}, she taught music.
She lives in {CITY:Surprise} with two cats.
After the stroke he returned home to {CITY:Independence}.
"""
NO_TOWNS = """
He was born in May and grew up in foster care.
She was moved to Recovery, then to Rehab.
He lives in Assisted Living.
The patient is from Hospice.
Moved to Chair with help of two.
He works in Security, she works in Commerce.
She spoke of Hope and Peace.
Hope is that he walks again.
He is from the Emergency Room.
"""
STREETS = """
Home is {ADDRESS:44 River Street}. Pain began in the night.
He lives at {ADDRESS:44 River Street}. {NAME:Todd Okafor} drove him.
Moved to {ADDRESS:12 Oak Blvd}. Sleep is poor.
Home: {ADDRESS:44 River Ave}. {CITY:Boston}, MA {ZIP:02114}
Home: {ADDRESS:44 River Street. Apt 4B}. Sleep is poor.
Home: {ADDRESS:44 River Ave., Apt. 4B}, {CITY:Boston}, MA {ZIP:02114}.
She lives at {ADDRESS:9 Pine Ct. Unit 12}, {CITY:Denver}, CO {ZIP:80202}.
She lives at {ADDRESS:7 Mill Rd}. {CITY:Leeds}, {ZIP:LS1 4AP}.
Seen in the office on {ADDRESS:Elm Ave}. She walks.
A crash on {ADDRESS:South and Elm Road}, seen by EMS.
She lives at {ADDRESS:9 Pine Street}, {CITY:Denver}, CO {ZIP:80202}.\\n\\nCurrent medications are 2.
"""


def lines(block):
    return [line.replace("\\n", "\n") for line in block.strip().splitlines()]


@pytest.mark.parametrize("marked", lines(TOWNS) + lines(STREETS))
def test_the_place_is_found_and_nothing_else(finder, marked):
    text, _ = unmark(marked)
    spans = [(span.start, span.end, span.label) for span in finder.find(text, "p")]
    assert marked_again(text, spans) == marked


@pytest.mark.parametrize("text", lines(NO_TOWNS))
def test_a_word_elsewhere_is_no_town(finder, text):
    assert not [span for span in finder.find(text, "p") if span.label == "CITY"]
