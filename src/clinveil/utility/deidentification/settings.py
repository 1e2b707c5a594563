"""Settings of `clinveil evaluate deidentification`."""

from __future__ import annotations

from typing import Literal

from clinveil.core.settings import QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.phi.settings import PhiSettings


class EvaluateDeidentificationSettings(Settings):
    """Settings of `clinveil evaluate deidentification`."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    offsets: Literal["codepoints", "bytes", "utf16"] = flag(
        "codepoints", "What the offsets of spans count: code points, bytes of UTF-8, units of UTF-16 (Java, browsers)."
    )
    listed: bool = flag(False, "Only the notes that SPANS names: a sample was annotated.")
    incomplete: bool = flag(False, "SPANS are not all identifiers of their notes: no precision.")
    grid: bool = flag(False, "Measure on a grid of invented notes instead.")
    size: int | None = flag(None, "--grid: only so many of its notes.", ge=1)
    all_names: bool = flag(False, "--grid: also names that are not held out for tests: for looking, not for claims.")
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
