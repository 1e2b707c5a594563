"""Settings of `clinveil validate`."""

from __future__ import annotations

from clinveil.core.settings import FORCE, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.phi.settings import PhiSettings


class ValidateSettings(Settings):
    """Settings of `clinveil validate`."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    spots: int = flag(200, "Number of sampled locations to annotate.", ge=40, le=100_000)
    passage: int = flag(40, "Words per passage, the sampling unit of unsuspicious text.", ge=5, le=1_000)
    sampled_patients: int = flag(1_000, "Number of patients sampled for canaries and capture-recapture.", ge=2)
    first: str = flag(
        "rules", "First side of capture-recapture: detectors joined by +, or `rules` (all but the tagger)."
    )
    second: str = flag("tagger", "Second side of capture-recapture: detectors joined by +.")
    dependence: tuple[float, ...] = flag(
        (1.0, 2.0, 5.0, 10.0), "Odds ratios of dependence between the two sides' misses."
    )
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
