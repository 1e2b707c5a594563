"""Measure the main jobs by size: words per second, processor time and peak memory of each stage,
and straight lines.

    python benchmarks/scale.py run FOLDER --words 1e6 1e7 1e8 --jobs deidentify release --workers 1
    2 python benchmarks/scale.py run FOLDER --words 3e5 6e5 1e6 --jobs embed --train-words 0
    --epochs 1 python benchmarks/scale.py table FOLDER

`run` generates each corpus once, runs each job that has no result yet as a separate command, and
prints the tables; it can be interrupted and run again. Results are stored in FOLDER/results/*.json
with command, date and machine; `table` prints them as Markdown. A release has the list of known
patients and a label, as in the README. Memory is the proportional set size (PSS) of all processes
of the command, sampled once per second, so shorter peaks are missed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORDS_PER_PATIENT = 1240  # of an invented patient, measured over 1,000
JOBS = ("embed", "deidentify", "release")
TICKS = os.sysconf("SC_CLK_TCK")
STAGES = {
    "identifiers",
    "vocabulary",
    "vectors",
    "neighbours",
    "obfuscate",
    "check",
    "measure",
    "report",
}
LOOK_SECONDS = 1.0


@dataclass
class Stage:
    """One stage of a command: seconds of wall time and processor time, and peak memory in bytes."""

    name: str
    began: float
    cpu_before: float
    seconds: float = 0.0
    cpu: float = 0.0
    peak: int = 0


@dataclass
class Watch:
    """Measure a command and its descendants."""

    pid: int
    stages: list[Stage] = field(default_factory=list)
    last_cpu: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, name: str) -> None:
        """Record the start of a stage."""
        self.look()
        with self.lock:
            self.stages.append(Stage(name, time.perf_counter(), self.last_cpu))

    def look(self) -> None:
        """Record time and memory of the current stage."""
        cpu = 0.0
        memory = 0
        for pid in _tree(self.pid):
            cpu += _cpu(pid)
            memory += _pss(pid)
        with self.lock:
            self.last_cpu = max(self.last_cpu, cpu)
            if self.stages:
                stage = self.stages[-1]
                stage.seconds = time.perf_counter() - stage.began
                stage.cpu = self.last_cpu - stage.cpu_before
                stage.peak = max(stage.peak, memory)


def _tree(root: int) -> Iterator[int]:
    yield root
    try:
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))
    except OSError:
        return


def _cpu(pid: int) -> float:
    """Return the seconds of a process and of its ended children."""
    try:
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, parts[11:15])) / TICKS


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def watched(line: Sequence[str], log: Path) -> tuple[int, list[Stage]]:
    """Run a command; return its exit code, and its stages as printed on stderr."""
    with log.open("w") as out:
        run = subprocess.Popen(line, stdout=out, stderr=subprocess.PIPE, text=True)
        watch = Watch(run.pid)
        watch.begin("read")
        done = threading.Event()

        def look() -> None:
            while not done.wait(LOOK_SECONDS):
                watch.look()

        looker = threading.Thread(target=look, daemon=True)
        looker.start()
        assert run.stderr is not None
        for said in run.stderr:
            out.write(said)
            out.flush()
            name = said.partition(":")[0]
            if name in STAGES:
                watch.begin(name)
        watch.look()
        code = run.wait()
        done.set()
        looker.join()
    return code, watch.stages


def corpus(folder: Path, words: float, workers: int) -> Path:
    """Return the invented corpus of about this many words, generated once."""
    patients = max(60, round(words / WORDS_PER_PATIENT))
    place = folder / f"notes-{int(words):.0e}".replace("+", "")
    if not (place / "notes.parquet").exists():
        shutil.rmtree(place, ignore_errors=True)
        line = [
            "demo",
            "--notes-only",
            "-o",
            str(place),
            "--patients",
            str(patients),
            "--workers",
            str(workers),
            "-q",
        ]
        once(
            folder,
            f"generate-{int(words)}",
            line,
            words=None,
            workers=workers,
            notes=place / "notes.parquet",
        )
        (place / "spans.jsonl").unlink(
            missing_ok=True
        )  # not used here, and four times as large as the notes
    return place / "notes.parquet"


def counted(notes: Path) -> tuple[int, int]:
    """Return the numbers of notes and of words separated by white space."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    n_notes = n_words = 0
    with pq.ParquetFile(notes) as file:
        for batch in file.iter_batches(2000, columns=["text"]):
            n_notes += batch.num_rows
            n_words += (
                pc.sum(pc.list_value_length(pc.utf8_split_whitespace(batch.column(0)))).as_py() or 0
            )
    return n_notes, n_words


def once(
    folder: Path, name: str, line: list[str], *, words: int | None, workers: int, notes: Path
) -> dict[str, Any] | None:
    """Run a command unless its result exists; results are written atomically."""
    file = folder / "results" / f"{name}.json"
    if file.exists():
        return json.loads(file.read_text())
    file.parent.mkdir(parents=True, exist_ok=True)
    print(f"{name} …", file=sys.stderr, flush=True)
    began = time.perf_counter()
    code, stages = watched([sys.executable, "-m", "clinveil", *line], file.with_suffix(".log"))
    seconds = time.perf_counter() - began
    if code not in (0, 4):  # 4: a gate refused, after all work
        print(f"{name}: exit {code}, see {file.with_suffix('.log')}", file=sys.stderr)
        return None
    n_notes, n_words = counted(notes)
    found = {
        "name": name,
        "job": line[0],
        "asked": words,
        "workers": workers,
        "words": n_words,
        "notes": n_notes,
        "seconds": seconds,
        "cpu": sum(stage.cpu for stage in stages),
        "peak": max(stage.peak for stage in stages),
        "stages": [
            {"name": s.name, "seconds": s.seconds, "cpu": s.cpu, "peak": s.peak} for s in stages
        ],
        "command": (
            "clinveil "
            + " ".join(part if not part.startswith("/") else Path(part).name for part in line)
        ),
        "exit": code,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "machine": (
            f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        ),
    }
    part = file.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1))
    part.replace(file)
    return found


def run(
    folder: Path,
    words: Sequence[float],
    jobs: Sequence[str],
    workers: Sequence[int],
    more: list[str],
) -> None:
    """Run all jobs without a result, smallest corpus first."""
    folder.mkdir(parents=True, exist_ok=True)
    for size in sorted(words):
        notes = corpus(folder, size, max(workers))
        for job in jobs:
            for n in workers:
                out = folder / f"out-{job}"
                shutil.rmtree(out, ignore_errors=True)
                for left in folder.glob(f"out-{job}.*"):
                    shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()
                whole = job in ("release", "embed")  # these make a folder
                target = out if whole else out / "notes.parquet"
                if not whole:
                    out.mkdir()
                line = [job, str(notes), "-o", str(target), "--workers", str(n)]
                line += more if whole else []
                if job == "release":
                    line += [
                        "--as",
                        "obfuscated",
                        "--label",
                        "diagnosis_group",
                        "--patients",
                        str(notes.with_name("patients.parquet")),
                    ]
                    line += ["--set", f"ledger={str(out) + '.ledger'}"]
                once(
                    folder, f"{job}-{int(size)}-{n}", line, words=int(size), workers=n, notes=notes
                )
                shutil.rmtree(out, ignore_errors=True)
                shutil.rmtree(str(out) + ".ledger", ignore_errors=True)


def results(folder: Path) -> list[dict[str, Any]]:
    """Return all results, sorted by job, workers and size."""
    found = [json.loads(file.read_text()) for file in (folder / "results").glob("*.json")]
    return sorted(found, key=lambda one: (one["job"], one["workers"], one["words"]))


def table(folder: Path) -> None:
    """Print the tables in Markdown."""
    found = results(folder)
    print(
        "| job | workers | words | notes | clock, s | processor, s | words/s | words/s and core |"
        " peak, MiB |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for one in found:
        print(
            f"| {one['job']} | {one['workers']} | {one['words']:,} | {one['notes']:,} |"
            f" {one['seconds']:,.0f} | {one['cpu']:,.0f} | {one['words'] / one['seconds']:,.0f} |"
            f" {one['words'] / one['cpu']:,.0f} | {one['peak'] / 2**20:,.0f} |"
        )
    for one in found:
        if one["job"] == "release":
            _stages(one)
    _curves(found)
    _scaling(found)


def _stages(one: dict[str, Any]) -> None:
    print(
        f"\n`{one['command']}`, {one['words']:,} words, {one['machine']}, {one['date']}, exit"
        f" {one['exit']}\n"
    )
    print("| stage | clock, s | processor, s | µs a word | peak, MiB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for stage in one["stages"]:
        each = 1e6 * stage["cpu"] / one["words"]
        print(
            f"| {stage['name']} | {stage['seconds']:,.1f} | {stage['cpu']:,.1f} | {each:.2f} | "
            f"{stage['peak'] / 2**20:,.0f} |"
        )


def _curves(found: Sequence[dict[str, Any]]) -> None:
    """Print a straight line through processor time and memory by words, for each job with two sizes
    or more.
    """
    import numpy as np

    print()
    for job, n in sorted({(one["job"], one["workers"]) for one in found}):
        some = [one for one in found if (one["job"], one["workers"]) == (job, n)]
        if len(some) < 2:
            continue
        words = np.array([one["words"] for one in some], dtype=float)
        for what, unit, scale in (("cpu", "s", 1.0), ("peak", "MiB", 2.0**20)):
            values = np.array([one[what] for one in some]) / scale
            slope, start = np.polyfit(words, values, 1)
            worst = np.abs(start + slope * words - values).max()
            print(f"{job}, {n} workers, {what}: {start:,.1f} {unit} + {slope * 1e6:.3f} {unit} a "
            f"million words "
                  f"(largest residual {worst:,.1f} of {len(some)} sizes); at 1e8: "
                  f"{start + slope * 1e8:,.0f} {unit}, "
                  f"at 1e9: {start + slope * 1e9:,.0f} {unit}  ")  # fmt: skip


def _scaling(found: Sequence[dict[str, Any]]) -> None:
    """Print the ratio of seconds with one worker and with several, for the same job and corpus."""
    by = {(one["job"], one["words"], one["workers"]): one for one in found}
    for (job, words, n), one in sorted(by.items()):
        alone = by.get((job, words, 1))
        if n > 1 and alone:
            print(
                f"{job}, {words:,} words: 1 to {n} workers {alone['seconds'] / one['seconds']:.2f}"
                " times  "
            )
            for a, b in zip(alone["stages"], one["stages"], strict=False):
                if a["name"] == b["name"] and b["seconds"] > 5:
                    print(f"- {a['name']}: {a['seconds'] / b['seconds']:.2f}")


def main() -> None:
    """Run the jobs, or print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=("run", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--words", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS[1:]))
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    known, more = parser.parse_known_args()
    if known.do == "run":
        run(
            known.folder.resolve(),
            known.words,
            known.jobs,
            known.workers,
            [part for part in more if part != "--"],
        )
    table(known.folder.resolve())


if __name__ == "__main__":
    main()
