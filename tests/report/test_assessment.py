"""The impact assessment says what page one says, and leaves to people what only they know."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invented_release import of_kind, record

from clinveil.report import impact_assessment
from clinveil.report.page_one import KINDS, first_page


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_of_page_one_stands_in_the_assessment_with_its_outcome(kind):
    held = of_kind(kind)
    text = impact_assessment(held)
    page = first_page(held)
    for row in page.rows:
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {row.question.asks}")]
        assert f"| {row.outcome} | ____ |" in line
    assert page.headline.rstrip(".") in text.replace("\\", "")
    assert all(sentence in text for sentence in page.covers)
    assert all(line in text for line in held.skipped)


def test_what_the_officer_gave_is_filled_in_and_the_rest_is_open():
    given = replace(record(), recipient="Ward | 7", purpose="a *study*", review_on="2027-01-31")
    text = impact_assessment(given)
    assert "Ward \\| 7" in text and "a \\*study\\*" in text and "2027-01-31" in text
    assert "Recipient: ____" in impact_assessment(record())
    assert all(f"{what}: ____" in text for what in ("Legal basis", "Remaining risk", "signature"))


def test_a_withdrawn_release_is_said_to_be_withdrawn():
    text = impact_assessment(record(), "withdrawn on 2026-11-29 (wrong recipient)")
    assert "This release was withdrawn on 2026-11-29 (wrong recipient)" in text
    assert "withdrawn" not in impact_assessment(record())
