"""Settings of `clinveil validate`."""

from __future__ import annotations

from clinveil.core.settings import FORCE, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.phi.settings import PhiSettings


class ValidateSettings(Settings):
    """Settings of `clinveil validate`."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    spots: int = flag(200, "How many places of the notes are drawn for somebody to look at.", ge=40, le=100_000)
    passage: int = flag(40, "Words of a passage without anything suspicious: one place to look at.", ge=5, le=1_000)
    sampled_patients: int = flag(1_000, "Patients whose notes get canaries, and are read by two detectors.", ge=2)
    first: str = flag(
        "rules", "One side of capture-recapture: detectors joined by +; `rules`: all, --also too, but tagger."
    )
    second: str = flag("tagger", "The other side: detectors joined by +.")
    dependence: tuple[float, ...] = flag(
        (1.0, 2.0, 5.0, 10.0), "Odds ratios between the two sides: how far what one misses the other misses too."
    )
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
