"""Kill commands at random file operations, limit the size of files, and read damaged files; print a table of faults.

    python benchmarks/torture.py --minutes 60

A fault is: a released folder that does not verify, note text in a message or outside the output, a killed command that
does not finish when it is run again, or an exception that is not one clear line.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.core.errors import ClinveilError
from clinveil.core.finding import read_findings
from clinveil.core.load_settings import load_settings
from clinveil.core.settings import NotesSettings
from clinveil.corpus.open import open_corpus
from clinveil.corpus.people import read_patients
from clinveil.releases.manifest import verify
from clinveil.releases.settings import ReleaseSettings
from clinveil.vectors.files import load_vectors

CANARY = "Xylophonova"  # a name in every note of one patient
HOOK = """
import os, signal, sys
left = int(os.environ["TORTURE_AFTER"])
names = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.truncate"}
mine = os.getpid()
def count(event, arguments):
    global left
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wxa+")
    opened = event == "open" and arguments[1] is None and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if (event in names or writes or opened) and os.getpid() == mine:
        left -= 1
        if left == 0:
            os.kill(mine, signal.SIGKILL)
sys.addaudithook(count)
"""
QUICK = [f"--set={key}" for key in ("epochs=1", "dim=20", "measure_words=2000", "allow_small=true", "phi=false")]
NOTES_TO_OUT = ["NOTES", "-o", "OUT", "--quiet"]
COMMANDS = {
    "deidentify": ["deidentify", "NOTES", "-o", "OUT/notes.parquet", "--vault", "OUT/vault", "--patients", "PATIENTS"],
    "release deidentified": ["release", *NOTES_TO_OUT, "--as", "deidentified", "--patients", "PATIENTS", "--again"],
    "release coded": ["release", *NOTES_TO_OUT, "--as", "coded", "--again", *QUICK],
    "release synthetic": ["release", *NOTES_TO_OUT, "--as", "synthetic", "--again"],
    "embed": ["embed", *NOTES_TO_OUT, "--set=epochs=1"],
}

Parser = tuple[bytes, Callable[[Path], object]]


class Desk:
    """A folder with invented notes, one of whose patients has a name that must not be seen elsewhere."""

    def __init__(self, root: Path) -> None:
        self.root, self.notes, self.patients = root, root / "demo" / "notes.parquet", root / "demo" / "patients.parquet"
        (root / "hook").mkdir()
        (root / "hook" / "sitecustomize.py").write_text(HOOK)
        self.run(["demo", "--notes-only", "-o", str(root / "demo"), "--patients", "70", "--seed", "3"])
        table = pq.read_table(self.notes)
        first = table["patient_id"][0].as_py()
        pairs = zip(table["patient_id"].to_pylist(), table["text"].to_pylist(), strict=True)
        text = [f"Seen with {CANARY} today. {text}" if patient == first else text for patient, text in pairs]
        pq.write_table(table.set_column(table.schema.get_field_index("text"), "text", pa.array(text)), self.notes)

    def run(self, arguments: list[str], after: int = 0, largest: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command; kill it at file operation `after`, or limit files to `largest` bytes."""
        temporary = self.root / "tmp"
        temporary.mkdir(exist_ok=True)
        path = [str(self.root / "hook")] if after else []
        more = {"TORTURE_AFTER": str(after), "TMPDIR": str(temporary), "CLINVEIL_LEDGER": str(self.root / "ledger")}
        more["PYTHONPATH"] = os.pathsep.join(filter(None, [*path, os.environ.get("PYTHONPATH", "")]))

        def limit() -> None:
            if largest:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

        call = [sys.executable, "-m", "clinveil", *arguments]
        return subprocess.run(call, env={**os.environ, **more}, text=True, capture_output=True, preexec_fn=limit)

    def arguments(self, command: str, out: Path) -> list[str]:
        """Return the arguments with real paths."""
        places = {"NOTES": str(self.notes), "PATIENTS": str(self.patients)}
        return [places.get(word, word.replace("OUT", str(out))) for word in COMMANDS[command]]

    def faults(self, done: subprocess.CompletedProcess[str], out: Path) -> Iterator[str]:
        """Yield the faults of a command that was killed or limited."""
        if CANARY in done.stdout + done.stderr:
            yield "note text in a message"
        if any(CANARY.encode() in path.read_bytes() for path in (self.root / "tmp").rglob("*") if path.is_file()):
            yield "note text in a temporary file"
        if (out / "release").is_dir() and not all(check.passed for check in verify(out / "release")):
            yield "a release that does not verify"


def killed(desk: Desk, random: Random, until: float, kills: int) -> Iterator[tuple[str, str]]:
    """Kill each command at random file operations and run it again; yield command and result."""
    calls = dict.fromkeys(COMMANDS, 400)
    for n in range(kills):
        command = list(COMMANDS)[n % len(COMMANDS)]
        if time.monotonic() > until:
            return
        out = desk.root / f"{command.replace(' ', '-')}-{n}"
        at = random.randint(1, calls[command])
        done = desk.run(desk.arguments(command, out), after=at)
        if done.returncode >= 0:  # it ended before
            calls[command] = max(20, at - 1)
            yield command, "ended before" if done.returncode == 0 else f"exit {done.returncode} without a kill"
        else:
            faults = [*desk.faults(done, out)]
            again = desk.run(desk.arguments(command, out))
            if again.returncode:
                faults.append(f"exit {again.returncode} when run again: {again.stderr.strip().splitlines()[-1:]}")
            yield command, "; ".join([*faults, *desk.faults(again, out)]) or "finished when run again"
        shutil.rmtree(out, ignore_errors=True)


def limited(desk: Desk, random: Random, until: float) -> Iterator[tuple[str, str]]:
    """Run each command with a limit on the size of files, as a full disk; yield command and result."""
    while time.monotonic() < until:
        for command in COMMANDS:
            out = desk.root / f"limited-{random.randrange(10**9)}"
            done = desk.run(desk.arguments(command, out), largest=int(10 ** random.uniform(1, 5.5)))
            faults = [*desk.faults(done, out)]
            if done.returncode not in (0, 2, 3, 5) or len(done.stderr.strip().splitlines()) > 40:
                faults.append(f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
            yield f"{command}, limited files", "; ".join(faults) or f"exit {done.returncode}"
            shutil.rmtree(out, ignore_errors=True)


def parsers(desk: Desk) -> dict[str, Parser]:
    """Return for each kind of input a valid file and its reader, which has read the file."""

    def notes(path: Path) -> int:
        return sum(batch.num_rows for batch in open_corpus(path, NotesSettings()).batches())

    rows = pq.read_table(desk.notes).slice(0, 8).select(["note_id", "patient_id", "text"]).to_pylist()
    cells = [[str(row[name]).replace('"', '""') for name in row] for row in rows]
    csv = "note_id,patient_id,text\n" + "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in cells)

    def settings(path: Path) -> ReleaseSettings:
        return load_settings(ReleaseSettings, {}, path, ())

    lines = "".join(json.dumps(row) + "\n" for row in rows)
    vectors = "3 2\n" + "".join(f"{word} {n} .5\n" for n, word in enumerate("abc"))
    kinds: dict[str, Parser] = {
        "notes.parquet": (desk.notes.read_bytes(), notes),
        "notes.csv": (csv.encode(), notes),
        "notes.tsv": (csv.replace('","', '"\t"').replace(",", "\t", 2).encode(), notes),
        "notes.jsonl": (lines.encode(), notes),
        "patients.parquet": (desk.patients.read_bytes(), read_patients),
        "settings.toml": (b"min_patients = 5\nlabel = ['a']\n[vectors]\ndim = 50\n", settings),
        "findings.json": (b'{"schema": "clinveil.findings/1", "version": "0.1.0", "findings": []}', read_findings),
        "vectors.txt": (vectors.encode(), load_vectors),
    }
    (desk.root / "fuzz").mkdir()
    for name, (valid, reader) in kinds.items():
        (desk.root / "fuzz" / name).write_bytes(valid)
        reader(desk.root / "fuzz" / name)
    return kinds


def damaged(data: bytes, random: Random) -> bytes:
    """Return the bytes with a few flips, cuts, repeats or insertions."""
    made = bytearray(data)
    for _ in range(random.randint(1, 6)):
        at = random.randrange(len(made) + 1)
        way = random.randrange(4)
        if way == 0 and at < len(made):
            made[at] ^= 1 << random.randrange(8)
        elif way == 1:
            del made[at : at + random.randint(1, 60)]
        elif way == 2:
            made[at:at] = made[at : at + random.randint(1, 60)]
        else:
            made[at:at] = random.choice(
                [b"\x00", b"\xff\xfe", b'"', b"\n", b"{", "\ud800".encode("utf-8", "surrogatepass")]
            )
    return bytes(made)


def read_damaged(kinds: dict[str, Parser], root: Path, random: Random, until: float) -> Iterator[tuple[str, str]]:
    """Read damaged files in this process; yield the kind of file and the result."""
    while time.monotonic() < until:
        for name, (valid, reader) in kinds.items():
            path = root / "fuzz" / name
            path.write_bytes(damaged(valid, random))
            try:
                reader(path)
                yield name, "read"
            except ClinveilError as error:
                leak = CANARY in str(error)
                yield name, "note text in a message" if leak else "refused in one line"
            except Exception as error:  # noqa: BLE001  any other exception is the fault that is sought
                kept = root.parent / f"fault-{random.randrange(10**9)}-{name}"
                shutil.copy(path, kept)
                yield name, f"{type(error).__name__} ({kept.name})"


def main() -> None:
    """Run all three, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    how = parser.parse_args()
    random, began, results = Random(how.seed), time.monotonic(), Counter[tuple[str, str]]()
    shares = (0.7, 0.8, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        until = [began + share * how.minutes * 60 for share in shares]
        kinds = parsers(desk)
        for tried in (
            killed(desk, random, until[0], how.kills),
            limited(desk, random, until[1]),
            read_damaged(kinds, Path(folder), random, until[2]),
        ):
            results.update(tried)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {date.today()}"
    print(f"`python benchmarks/torture.py --minutes {how.minutes:g} --seed {how.seed}`; {machine}.\n")
    print("| What | Result | Times |\n| --- | --- | ---: |")
    for (what, result), times in sorted(results.items()):
        print(f"| {what} | {result} | {times:,} |")


if __name__ == "__main__":
    main()
