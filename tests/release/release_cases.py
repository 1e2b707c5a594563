"""How the tests of `clinveil release` call it."""

from __future__ import annotations

from clinveil.cli.main import main

# Many releases of the same notes lie beside one another here: --again.
FAST = [
    "--set",
    "max_names=1",
    "--set",
    "max_linkage=1",
    "--set",
    "epochs=1",
    "--set",
    "window=5",
    "--set",
    "dim=16",
    "--workers",
    "1",
    "--quiet",
    "--again",
]


def release(folder, out, *flags, notes="demo/notes.parquet"):
    """The arguments of a release of the demo notes of a folder."""
    patients = (
        ["--patients", str(folder / "demo" / "patients.parquet")]
        if (folder / "demo").exists()
        else []
    )
    return ["release", str(folder / notes), "-o", str(folder / out), *patients, *FAST, *flags]


def demo_notes_in(folder):
    """Write demo notes of 70 patients into a folder."""
    assert (
        main(
            [
                "demo",
                "--notes-only",
                "-o",
                str(folder / "demo"),
                "--patients",
                "70",
                "--seed",
                "3",
                "--quiet",
            ]
        )
        == 0
    )
    return folder
