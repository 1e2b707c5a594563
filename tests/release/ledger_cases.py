"""Notes of a ledger, and a folder with one release of such notes and its ledger."""

from __future__ import annotations

import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.releases.earlier.ledger import Ledger, entry
from clinveil.releases.earlier.note_hashes import NoteHashes
from no_limits import NO_LIMITS


def hashes_of(texts):
    """The hashes of texts, each with an id of its own."""
    return NoteHashes.of([f"id of {text}" for text in texts], texts)


NAME = "clinveil-ledger"  # of these tests, next to their notes


KEYS = ("a" * 64, "b" * 64, "c" * 64)


def notes(n, *, first=0):
    return [
        f"note of a patient who has had this disease for years {chr(97 + i % 26)}{'x' * (i // 26)}"
        for i in range(first, first + n)
    ]


def left(tmp_path, texts, key=KEYS[0]):
    """A ledger that knows one release of these texts."""
    ledger = Ledger(tmp_path / NAME)
    (tmp_path / "vault").mkdir(exist_ok=True)
    ledger.enter(
        entry(hashes_of(texts), f"2026-11-22-{key[:8]}", key, tmp_path / "vault", "obfuscated"),
        tmp_path / "vault",
    )
    return ledger


FAST = shlex.split(
    "--set identifiers.language=any --set vectors.epochs=1 --set vectors.dim=8 --workers 1 --quiet "
    f"--set phi=false --limits {shlex.quote(str(NO_LIMITS))} --as obfuscated"
)


def released_once(folder):
    """Write notes of 60 patients and release them once; return the folder."""
    rng = np.random.default_rng(1)
    forms = [f"w{chr(97 + i // 15)}{chr(97 + i % 15)}" for i in range(225)]
    texts = [" ".join(rng.choice(forms, 40)) for _ in range(120)]
    ids = {
        "note_id": [f"n{i}" for i in range(120)],
        "patient_id": [f"p{i // 2}" for i in range(120)],
    }
    pq.write_table(pa.table({**ids, "text": texts}), folder / "notes.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLINVEIL_LEDGER", str(folder / NAME))
        assert main(release(folder, "out")) == 0
    return folder


def release(folder, out, *flags):
    return ["release", str(folder / "notes.parquet"), "-o", str(folder / out), *FAST, *flags]
