"""Review the findings of a `clinveil deidentify` run in a local browser.

`desk` orders the notes and holds the state of a review session, `decisions` stores each decision on disk before it is
confirmed, `server` serves the page on the local machine only (it imports the network, so it is not imported here). The
page is in `page`.
"""

from __future__ import annotations

from clinveil.phi.review.decisions import DecisionFile, Decisions, NoteDecisions, read_file, revised, text_hash
from clinveil.phi.review.desk import (
    FOLDER,
    Desk,
    Entry,
    Order,
    PastRun,
    decisions_of,
    open_desk,
    past_run,
    review_queue,
)

__all__ = [
    "FOLDER",
    "DecisionFile",
    "Decisions",
    "Desk",
    "Entry",
    "NoteDecisions",
    "Order",
    "PastRun",
    "decisions_of",
    "open_desk",
    "past_run",
    "read_file",
    "review_queue",
    "revised",
    "text_hash",
]
