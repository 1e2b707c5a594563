"""Cost of Ray and Spark compared with local processes: `python benchmarks/executors.py [PATIENTS
[local ray]]`.

For each executor: seconds to its first result, for an empty item, for a megabyte sent and returned,
and for one `deidentify` of demo notes, whose bytes must be the same. Ratios are against local
processes of the same run.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
import warnings
from hashlib import sha256
from pathlib import Path

from clinveil.corpus import write_demo
from clinveil.phi import DeidentifySettings, deidentify_notes
from clinveil.scale import ExecutorSettings, opened_for

WORKERS = 2
ITEMS = 100
LARGE = 8
MEGABYTES = 4


def nothing(item: object) -> None:
    pass


def same(item: bytes) -> bytes:
    return item


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def overhead(on: str) -> dict[str, float]:
    """Seconds of an executor's start, of each item, of each megabyte there and back."""
    start = time.perf_counter()
    with opened_for(ExecutorSettings(on=on), WORKERS) as over:
        list(over(nothing, range(WORKERS)))
        found = {"start": time.perf_counter() - start}
        # Local processes are started for each map: what that takes is the start's, not the items'.
        again = seconds(lambda: list(over(nothing, range(WORKERS)))) if on == "local" else 0.0
        found["item"] = max(seconds(lambda: list(over(nothing, range(ITEMS)))) - again, 0.0) / ITEMS
        large = os.urandom(MEGABYTES << 20)
        taken = seconds(lambda: list(over(same, (large for _ in range(LARGE)))))
        found["megabyte"] = max(taken - again - LARGE * found["item"], 0.0) / (LARGE * MEGABYTES)
    return found


def deidentified(on: str, notes: Path, folder: Path) -> tuple[float, str]:
    """Seconds of a run, and the hash of what it wrote."""
    out = folder / f"{on}.parquet"
    settings = DeidentifySettings.model_validate(
        {"executor": {"on": on}, "workers": WORKERS, "seed": 1, "quiet": True}
    )
    taken = seconds(lambda: deidentify_notes(notes, out, settings, say=lambda line: None))
    return taken, sha256(out.read_bytes()).hexdigest()


def ray_data() -> tuple[float, float]:
    """Seconds of the first pass of Ray Data, in order, over so many rows, and for each row of a
    second one.
    """
    import ray

    with opened_for(ExecutorSettings(on="ray"), WORKERS):
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        rows = [{"item": item} for item in range(ITEMS)]

        def once() -> None:
            data = ray.data.from_items(rows, override_num_blocks=ITEMS).map(lambda row: row)
            assert [row["item"] for row in data.iter_rows()] == list(range(ITEMS))

        first = seconds(once)
        return first, seconds(once) / ITEMS


def main() -> None:
    warnings.simplefilter("ignore")
    count = int((sys.argv[1:] or ["150"])[0])
    executors = sys.argv[2:] or ["local", "ray", "spark"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_demo(folder / "demo", count, 1, workers=1)
        notes = folder / "demo" / "notes.parquet"
        base: dict[str, float] = {}
        hashes = set()
        for on in executors:
            found = overhead(on)
            found["deidentify"], digest = deidentified(on, notes, folder)
            hashes.add(digest)
            base = base or found
            print(
                on,
                *(
                    f"{name} {value:.4f} s ({value / base[name]:.2f})"
                    for name, value in found.items()
                ),
                sep=", ",
            )
        print(f"same bytes: {len(hashes) == 1}")
    if "ray" in executors:
        print("Ray Data: first pass {:.2f} s, {:.4f} s an item".format(*ray_data()))


if __name__ == "__main__":
    main()
