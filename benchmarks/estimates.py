"""Compare the estimated with the measured seconds of a release, and print the rates that would have
been right.

Usage: python benchmarks/estimates.py NOTES [RELEASE OPTIONS ...]
       python benchmarks/estimates.py demo

Runs `clinveil release NOTES RELEASE OPTIONS` at its defaults, or `clinveil demo`, in a temporary
folder (Linux only). The last two columns go into `RATES` of src/clinveil/corpus/estimate.py. Where
most of the estimate is fixed, both change; else `each` carries the difference. Run it on a small
and a large corpus to tell the two apart. They come from processor time, so other work on the
machine changes them little. Pass no option that changes what is estimated (another algorithm or
window, --no-phi).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from clinveil.corpus.estimate import RATES, estimate
from clinveil.corpus.inspect import inspect
from clinveil.corpus.open import open_corpus

WORKERS = 2
TICK = os.sysconf("SC_CLK_TCK")


class Took(NamedTuple):
    """Seconds of wall time, and of processor time of all processes."""

    wall: float
    processor: float


def processor_seconds(root: int) -> float:
    """Processor time of a process and its descendants, those that have ended included."""
    seconds = {}
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            values = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found.setdefault(int(values[1]), []).append(int(path.parent.name))
        seconds[int(path.parent.name)] = sum(map(int, values[11:15])) / TICK
    total = 0.0
    waiting = [root]
    while waiting:
        process = waiting.pop()
        total += seconds.get(process, 0.0)
        waiting += found.get(process, [])
    return total


def added(took: Took, start: Took, end: Took) -> Took:
    """What a step took, with the time from start to end added; it is written to stderr too."""
    wall, processor = (t + b - a for t, a, b in zip(took, start, end, strict=True))
    print(f"  took {wall:.1f} s, processor {processor:.1f} s", file=sys.stderr)
    return Took(wall, processor)


def run(arguments: list[str]) -> dict[str, Took]:
    """Run the command line; return what each step took, by the lines on stderr that announce the
    steps.

    A refused release (exit 4) counts too. Time before the first step and after the last is the step
    "rest".
    """
    took = dict.fromkeys(RATES, Took(0.0, 0.0))
    command = [sys.executable, "-m", "clinveil", *arguments]
    name = "rest"
    last = Took(time.perf_counter(), 0.0)
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        for line in process.stderr:
            print(line, end="", file=sys.stderr)
            step = line.partition(":")[0]
            if step in RATES or step == "report":
                now = Took(time.perf_counter(), processor_seconds(process.pid))
                took[name] = added(took[name], last, now)
                name = "rest" if step == "report" else step
                last = now
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 4):
        raise SystemExit(process.returncode)
    now = Took(time.perf_counter(), usage.ru_utime + usage.ru_stime)
    took[name] = added(took[name], last, now)
    return took


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    source = sys.argv[1]
    options = sys.argv[2:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        if source == "demo":
            took = run(["demo", "-o", str(folder)])
            notes = folder / "notes" / "notes.parquet"
        else:
            took = run(["release", source, "-o", str(folder), *options])
            notes = Path(source)
        found = inspect(open_corpus(notes))
    report(found.words, found.types, took)


def report(n_words: int, n_types: int, took: dict[str, Took]) -> None:
    """Print estimate and measurement per step, and the rates that fit the processor time."""
    expected = estimate(n_words, n_types, workers=WORKERS)
    print(f"{n_words:,} words, {n_types:,} types\n")
    print("| step | estimated s | measured s | estimated / measured | processor s | fixed | each |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for name, (wall, processor) in took.items():
        rate = RATES[name]
        guess = expected.steps[name]
        # Without other work: what the workers share takes processor / workers, the rest its
        # processor time or less.
        true = min(wall, processor / WORKERS if rate.shared else processor)
        ratio = true / guess if guess else 1.0
        mostly_fixed = guess < 2 * rate.fixed or true <= rate.fixed
        fixed = rate.fixed * ratio if mostly_fixed else rate.fixed
        each = rate.each * (ratio if mostly_fixed else (true - rate.fixed) / (guess - rate.fixed))
        guess = expected.steps[name]
        cells = [
            name,
            f"{guess:.1f}",
            f"{wall:.1f}",
            f"{guess / max(wall, 0.01):.2f}",
            f"{processor:.1f}",
        ]
        print("| " + " | ".join([*cells, f"{fixed:.2g}", f"{each:.3g}"]) + " |")
    total = sum(one.wall for one in took.values())
    print(f"| all | {expected.seconds:.0f} | {total:.0f} | {expected.seconds / total:.2f} | | | |")


if __name__ == "__main__":
    main()
