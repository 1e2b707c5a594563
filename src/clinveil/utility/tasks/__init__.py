"""Tasks that a recipient can do with a release, one per file; `evaluations/transfer.py` runs them."""
