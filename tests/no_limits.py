"""Limits for releases of few invented notes, which would break one by chance."""

from __future__ import annotations

from pathlib import Path

NO_LIMITS = Path(__file__).with_suffix(".toml")
