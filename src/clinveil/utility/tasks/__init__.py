"""Tasks that a recipient can do with a release, one per file (run by `evaluations/transfer.py`)."""
