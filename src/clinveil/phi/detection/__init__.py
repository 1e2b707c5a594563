"""Detection of identifiers in notes: `Finder` runs the detectors on a `NoteView` and combines their
spans.
"""
