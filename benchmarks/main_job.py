"""Time of `clinveil release`: each stage on the clock, and the processor time of the complete run.

`python benchmarks/main_job.py NOTES [--source OLD/src ...] [-- OPTIONS OF RELEASE]` runs the
release once to warm caches and then once for the figures, for this source tree and each other one,
one after the other on the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parents[1] / "src"


def run(
    source: Path, notes: Path, options: list[str], out: Path
) -> tuple[float, float, dict[str, float]]:
    """Seconds on the clock, of processor time, and of each stage."""
    line = [sys.executable, "-m", "clinveil", "release", str(notes), "-o", str(out), "-q", *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        line, env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, text=True
    )
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 4):
        sys.exit(done.stderr)
    manifest = json.loads((out / "vault" / "manifest.json").read_text())
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, manifest["private"]["seconds"]


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--source", type=Path, action="append", default=[])
    known, options = parser.parse_known_args()
    options = [option for option in options if option != "--"]
    for source in (*known.source, HERE):
        with tempfile.TemporaryDirectory() as folder:
            for turn in ("first", "second"):
                seconds, used, stages = run(
                    source.resolve(), known.notes.resolve(), options, Path(folder) / turn
                )
                parts = ", ".join(f"{name} {value:.1f}" for name, value in stages.items())
                print(
                    f"{source.parent.name} {turn}: {seconds:.1f} s, processor {used:.1f} s; {parts}"
                )


if __name__ == "__main__":
    main()
