"""How the tests of `clinveil release` call it."""

from __future__ import annotations

import shlex

from clinveil.cli import main
from no_limits import NO_LIMITS

# Many releases of the same notes lie beside one another here: --again.
FAST = shlex.split(
    f"--limits {shlex.quote(str(NO_LIMITS))} --set vectors.epochs=1 --set vectors.window=5 "
    "--set vectors.dim=16 --workers 1 --quiet --again --as obfuscated"
)


def release(folder, out, *flags, notes="demo/notes.parquet"):
    """The arguments of a release of the demo notes of a folder."""
    patients = (
        ["--patients", str(folder / "demo" / "patients.parquet")]
        if (folder / "demo").exists()
        else []
    )
    return ["release", str(folder / notes), "-o", str(folder / out), *patients, *FAST, *flags]


def demo_notes_in(folder, patients=70):
    """Write demo notes of so many patients into a folder."""
    place = folder / "demo"
    line = f"demo --notes-only -o {place} --patients {patients} --seed 3 --quiet"
    assert main(shlex.split(line)) == 0
    return folder
