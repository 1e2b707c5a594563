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
        "codepoints", "Unit of span offsets: code points, UTF-8 bytes, or UTF-16 units (Java, browsers)."
    )
    listed: bool = flag(False, "Use only notes that SPANS lists (an annotated sample).")
    incomplete: bool = flag(False, "SPANS lacks some identifiers of its notes, so precision is not measured.")
    grid: bool = flag(False, "Measure on a grid of invented notes instead.")
    size: int | None = flag(None, "--grid: number of notes to sample.", ge=1)
    all_names: bool = flag(False, "--grid: also use names that are not held out for tests.")
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
