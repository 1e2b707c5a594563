"""Measures of utility: what a recipient can do with released notes."""

from __future__ import annotations
