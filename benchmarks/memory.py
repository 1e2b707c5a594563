"""Peak memory of a command over 1, 10, … times the notes: does it grow with their number?

`python benchmarks/memory.py [--command deidentify obfuscate] [--words 200000] [--times 1 10] [--parts 4] [--workers 1]`

Invented notes are written once for each size, in parts if asked for; the command runs in a process of its own, and the
resident memory of it and of all its children is read from /proc ten times a second: the largest of the sums, and the
largest that one process had. Vectors are trained beforehand on the smallest notes, so that obfuscate only applies them.
Pages of a file that several processes have mapped count once for each. It prints one line a run, and how the peaks of
the largest and the smallest size compare.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.corpus.corpus import TEXT
from clinveil.corpus.demo.stream import demo_notes

PATIENTS_AT_ONCE = 40


def main() -> int:
    """Measure and print."""
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]  # names.py here is not `names`
    asked = _arguments()
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        sizes = {times: _notes(folder / f"notes-{times}", times * asked.words, asked.parts) for times in asked.times}
        vectors = folder / "vectors"
        if "release" in asked.command:
            small = folder / f"notes-{min(asked.times)}"
            _run(
                [
                    "embed",
                    str(_input(small)),
                    "-o",
                    str(vectors),
                    "--dim",
                    "16",
                    "--set",
                    "epochs=1",
                    "--seed",
                    "1",
                    "-q",
                ]
            )
        for command in asked.command:
            _measure(command, sizes, folder, vectors, asked)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Peak memory of a command by the number of notes.")
    parser.add_argument("--command", nargs="+", default=["deidentify", "release"])
    parser.add_argument("--words", type=int, default=200_000)
    parser.add_argument("--times", nargs="+", type=int, default=[1, 10])
    parser.add_argument("--parts", type=int, default=1, help="part files for each --words words")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the notes go (default: the system's)")
    parser.add_argument("--flags", nargs=argparse.REMAINDER, default=[], help="more flags of the command, last")
    return parser.parse_args()


def _notes(folder: Path, words: int, parts: int) -> tuple[Path, int]:
    """Write about so many words; the smallest size has `parts` files, larger ones as many times more."""
    folder.mkdir()
    found, number, seed, writer = 0, 0, 0, None
    each = max(1, words // max(1, parts))
    while found < words:
        batches = demo_notes(PATIENTS_AT_ONCE, 1000 + seed)
        for batch in batches:
            table = _renamed(pa.Table.from_batches([batch]).select(["note_id", "patient_id", TEXT]), seed)
            if writer is None or (parts > 1 and found >= each * number):
                if writer is not None:
                    writer.close()
                writer = pq.ParquetWriter(folder / f"part-{number:04d}.parquet", table.schema, compression="zstd")
                number += 1
            writer.write_table(table, row_group_size=500)
            found += sum(map(str.count, table[TEXT].to_pylist(), [" "] * len(table))) + len(table)
        seed += 1
    assert writer is not None
    writer.close()
    return folder, found


def _renamed(table: pa.Table, seed: int) -> pa.Table:
    """Ids that no other piece of the notes has."""
    for at in range(2):
        ids = [f"{seed:04d}{one}" for one in table.column(at).to_pylist()]
        table = table.set_column(at, table.field(at), pa.array(ids, table.field(at).type))
    return table


def _input(folder: Path) -> Path:
    files = list(folder.glob("*.parquet"))
    return folder if len(files) > 1 else files[0]


def _measure(
    command: str, sizes: dict[int, tuple[Path, int]], folder: Path, vectors: Path, asked: argparse.Namespace
) -> None:
    peaks = {}
    for times, (notes, words) in sizes.items():
        out = folder / "out"
        arguments = [command, str(_input(notes)), "-o", str(out), "--workers", str(asked.workers), "-q", *asked.flags]
        if command == "release":
            arguments += ["--vectors", str(vectors)]
        began = time.perf_counter()
        together, largest = _run(arguments)
        seconds = time.perf_counter() - began
        peaks[times] = together
        rate = f"{seconds:,.0f} s, {words / seconds:,.0f} words/s"
        print(f"{command} x{times}: {words:,} words, {rate}, peak {together:,.0f} MiB, one process {largest:,.0f} MiB")
        for path in (out, folder / "out.vault", folder / "clinveil-ledger"):
            shutil.rmtree(path, ignore_errors=True)
    first, last = peaks[min(peaks)], peaks[max(peaks)]
    print(f"{command}: {last / first - 1:+.1%} memory for {max(peaks) // min(peaks)} times the notes")


def _run(arguments: list[str]) -> tuple[float, float]:
    """Run clinveil; the peak of the memory of all its processes together, and of one of them, in MiB."""
    process = subprocess.Popen([sys.executable, "-m", "clinveil", *arguments], stdout=subprocess.DEVNULL)
    together = largest = 0.0
    while process.poll() is None:
        found = [_resident(pid) for pid in _family(process.pid)]
        together, largest = max(together, sum(found)), max(largest, *found, 0.0)
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"{arguments[0]} ended with {process.returncode}")
    return together, largest


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    family, at = [pid], 0
    while at < len(family):
        try:
            for task in Path(f"/proc/{family[at]}/task").iterdir():
                family += map(int, (task / "children").read_text().split())
        except OSError:
            pass
        at += 1
    return family


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * 4096 / 2**20


if __name__ == "__main__":
    sys.exit(main())
