"""Estimate the recall of detection on a site's own notes, without annotated notes."""
