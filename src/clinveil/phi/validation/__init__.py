"""Estimate the recall of detection on a site's own notes, without annotated notes."""

from __future__ import annotations

from clinveil.phi.validation.run import recall_of_marks, validate_notes

__all__ = ["recall_of_marks", "validate_notes"]
