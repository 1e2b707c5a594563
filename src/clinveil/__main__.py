"""`python -m clinveil` is `clinveil`."""

from __future__ import annotations

from clinveil.cli.main import run

if __name__ == "__main__":
    run()
