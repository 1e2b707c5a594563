"""Replace words by draws from a `Channel`; `apply.py` is the hot loop."""
