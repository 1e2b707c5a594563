"""Tasks that a recipient can do with a release, one per file; `utility/release.py` runs them."""
