"""A vault that is damaged is refused in one line, whatever of it is."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.core import InputError
from clinveil.releases.earlier.vault import vault_table


@pytest.mark.parametrize("damage", [
    lambda path: path.unlink(),
    lambda path: path.write_bytes(path.read_bytes()[:40]),
    lambda path: pq.write_table(pq.read_table(path).drop_columns(["start"]), path),
])  # fmt: skip
def test_a_damaged_crosswalk_is_none(tmp_path, damage):
    path = tmp_path / "crosswalk.parquet"
    pq.write_table(pa.table({"note_id": ["n"], "start": [[0]]}), path)
    damage(path)
    with pytest.raises(
        InputError, match=f"{tmp_path.name}: the vault is damaged: crosswalk cannot be read"
    ):
        list(vault_table(tmp_path, "crosswalk"))
