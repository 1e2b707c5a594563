"""Token mechanisms: each compiles to one `Channel`; `apply.py` is the hot loop."""
