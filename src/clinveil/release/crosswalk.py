"""The crosswalk of a finished release, read back from its vault by those who may."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.core.errors import InputError


def source_notes(vault: Path) -> dict[str, str]:
    """Released note id -> source note id. Raises InputError where the vault holds no crosswalk."""
    file = vault / "crosswalk.parquet"
    try:
        table = pq.read_table(file, columns=["note_id", "source_note_id"])
    except (OSError, pa.ArrowException):
        raise InputError(
            "holds no crosswalk", where=vault.name, remedy="name the vault folder of this release, OUT/vault"
        ) from None
    return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
