"""What the de-identifier can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from clinveil.core.settings import Settings, flag


class PhiSettings(Settings):
    """What is done with the identifiers that the detectors find."""

    patients: Path | None = flag(None, "Known patients (patients.parquet): names, record numbers, phones, …")
    mode: Literal["remove", "replace", "tag"] = flag("replace", "Remove PHI, replace it by surrogates, or tag it.")
