"""`python -m clinveil` is `clinveil`."""

from __future__ import annotations

from clinveil.cli import run

if __name__ == "__main__":
    run()
