"""Fill the template of a data protection impact assessment from a record (GDPR, Article 35)."""

from __future__ import annotations

from clinveil.report.page_one import first_page
from clinveil.report.record import ReleaseRecord
from clinveil.report.rendering import environment, hits


def impact_assessment(record: ReleaseRecord, withdrawn: str = "") -> str:
    """Return the assessment as Markdown; what only people know is left open.

    Args:
        withdrawn: when and why the release was withdrawn, or "".

    Source: GDPR, Article 35(7); sections as in the guidance of supervisory authorities.
    """
    made = environment().overlay(autoescape=False)
    made.filters = made.filters | {"hits": hits}
    return made.get_template("assessment.md").render(
        record=record, front=first_page(record), withdrawn=withdrawn
    )
