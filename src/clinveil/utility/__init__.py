"""Utility, one task a file: what a researcher could still do with the released notes."""

from __future__ import annotations
