"""What tests over part files share."""

from __future__ import annotations

import json
import shlex
import shutil

import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.attacks.text.identifiers import Identifiers
from clinveil.attacks.text.uniqueness import Uniqueness
from clinveil.cli import main
from clinveil.releases import measured, pipeline, prepared_input
from no_limits import NO_LIMITS

FAST = ["--set", "vectors.dim=8", "--set", "vectors.epochs=1", "--set", "vectors.window=3"]
HOW = shlex.split(
    "--seed 5 --quiet --set identifiers.no_tagger=true --again --workers 1"
    f" --limits {shlex.quote(str(NO_LIMITS))}"
)


def rows(place):
    """All rows of a file or of the part files of a folder, as sorted tuples."""
    files = sorted(place.glob("*.parquet")) if place.is_dir() else [place]
    table = pa.concat_tables(pq.read_table(file) for file in files)
    return sorted(
        zip(*(table[name].to_pylist() for name in ("note_id", "patient_id", "text")), strict=True)
    )


def without_attacks(patch):
    """What is measured is asked elsewhere, stays with the driver, and takes most of a release's
    time.
    """
    patch.setattr(pipeline, "attacked", lambda *_: [])
    patch.setattr(pipeline, "useful", lambda *_: [])


def measured_release(dealt, out, patch, *flags):
    """The findings of what reads every note, of a release of which some patients are measured; all
    of it as tasks.
    """
    patch.setattr(pipeline, "attacked", measured.attacked)
    patch.setattr(measured, "of_release", lambda: [Identifiers, Uniqueness])
    patch.setattr(prepared_input, "MANY_WORDS", 0)
    how = [
        *shlex.split(
            f"--patients {dealt / 'demo/patients.parquet'} --as deidentified --keep note_type"
        ),
        *HOW[:-4],
    ]
    how += ["--set", "measure_words=6000"]
    assert main(["release", str(dealt / "parts"), "-o", str(out), *how, *flags]) == 4
    return json.loads((out / "vault/findings.json").read_text())["findings"]


def copied(dealt, folder):
    """The parts of their own, for a test that changes them."""
    return shutil.copytree(dealt / "parts", folder / "parts")


def cut(file):
    """Damage a part in its middle: its end, which is read first, stays."""
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 4 : len(raw) // 2] = bytes(len(raw) // 2 - len(raw) // 4)
    file.write_bytes(bytes(raw))


def small_vectors(dealt, name):
    """Vectors of the notes, for releases of them."""
    notes = str(dealt / "demo/notes.parquet")
    place = dealt / name
    assert main(["embed", notes, "-o", str(place), "--seed", "5", "--quiet", *FAST]) == 0
    return place


def release_command(dealt, out, vectors, notes="parts", *flags):
    """A release of the notes under a test seed, which ends in the vault with exit code 4."""
    people = ["--patients", str(dealt / "demo/patients.parquet")]
    where = ["release", str(dealt / notes), "-o", str(out), "--as", "obfuscated"]
    where += ["--vectors", str(vectors)]
    return [
        *where,
        *people,
        *HOW,
        *flags,
    ]
