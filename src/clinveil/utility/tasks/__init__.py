"""Tasks that a recipient can do with a release; `evaluations/transfer.py` runs them."""
