"""End every command early in three ways and run it again; read damaged files; print tables of
results and faults.

    python benchmarks/torture.py --minutes 60

A try runs one command in a forked process, ends it by a kill at a random file operation or time, by
a limit on the size of files or by a full disk, and runs it again undisturbed. The process that
forks has run every command already, so that a try does not import, load or compile anything.
Faults, compared with undisturbed runs of the same command:

- a released folder or an audit log that does not verify;
- note text in a message or a file outside the output;
- another exit code or other files of the second run, such as remaining scratch, or other bytes in
  files that two undisturbed runs write with the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import NamedTuple

os.environ.update(
    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"
)  # threads of these libraries do not survive a fork

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from clinveil.cli import main as clinveil
from clinveil.core import (
    ClinveilError,
    NotesSettings,
    files_in,
    load_settings,
    read_findings,
    remove,
    sha256,
    write_findings,
)
from clinveil.corpus import open_corpus, read_patients
from clinveil.phi import audit_checks, logs
from clinveil.releases import Check, ReleaseSettings, verify
from clinveil.vectors import load_vectors

CANARY = "Xylophonova"  # a name in every note of one patient
OPERATIONS = {
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.chmod",
    "os.link",
    "os.truncate",
    "fcntl.flock",
}
RANDOM = re.compile(
    r"(?:(?<=crosswalk-)|(?<=ledger/))[0-9a-f]{16}|[0-9a-f]{8}(?=\.part)|(?<=audit-)\d{4}"
)
KILLED = "killed"
LIMITED = "limited files"
FULL = "full disk"
DAMAGED = "damaged"


ONE = "--quiet --workers 1"
RELEASE = f"-o HERE/out {ONE} --set measure_words=500 --as"
VECTORS = "--set channel.allow_small=true --min-patients 2 --set vectors.epochs=1"
VECTORS += " --set vectors.dim=10 --set phi=false"
RELEASES = {
    "release obfuscated": f"release NOTES {RELEASE} obfuscated {VECTORS}",
    "release deidentified": f"release NOTES {RELEASE} deidentified --patients PATIENTS",
    "release synthetic": f"release NOTES {RELEASE} synthetic --set synthetic.count=8",
}
COMMANDS = {
    "demo": f"demo --notes-only -o HERE/out --patients 5 {ONE}",
    "init-config": "init-config release -o HERE/release.toml",
    "inspect": "inspect NOTES --json HERE/findings.json",
    "deidentify": (
        f"deidentify NOTES -o HERE/notes.parquet --vault HERE/vault --spans --crosswalk {ONE}"
    ),
    "deidentify --seed": (
        f"deidentify NOTES -o HERE/notes.csv --vault HERE/vault --patients PATIENTS --seed 7 {ONE}"
    ),
    "deidentify, two processes": (
        "deidentify PARTS -o HERE/out --vault HERE/vault --workers 2 --quiet"
    ),
    "reidentify": (
        "reidentify HERE/notes.parquet -o HERE/restored.parquet --vault HERE/vault --reason test"
    ),
    "validate": f"validate NOTES -o HERE/out --seed 7 {ONE}",
    **RELEASES,
    **{f"{name} --seed": f"{line} --seed 7" for name, line in RELEASES.items()},
    "release --reuse": f"release MORE -o HERE/more --reuse HERE/out/vault {ONE}",
    "release --force": f"release NOTES {RELEASE} deidentified --force --again",
    "report": "report HERE/out",
    "compare": (
        f"compare NOTES -o HERE/out --label group --kind deidentified --kind synthetic {ONE}"
    ),
    "embed": f"embed NOTES -o HERE/out --set vectors.epochs=1 --dim 10 --seed 7 {ONE}",
    "attack linkage": "attack linkage NOTES --known NOTES --json HERE/findings.json --seed 7",
    "evaluate transfer": "evaluate transfer NOTES NOTES --label group --json HERE/findings.json",
}
AFTER = dict.fromkeys(("release --force", "report"), "release deidentified")
AFTER |= {
    "release --reuse": "release obfuscated",
    "reidentify": "deidentify",
}  # start with the output of another command
Parser = tuple[bytes, Callable[[Path], object]]


class Undisturbed(NamedTuple):
    """What an undisturbed run does; `files`: their hashes, empty if two runs write different
    bytes.
    """

    code: int
    operations: int
    seconds: float
    files: dict[str, str]


class Desk:
    """Folders of one process: invented notes, the output and temporary files of a try, and what
    commands should do.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.input = root / "input"
        self.here = root / "here"
        self.kept = root / "kept"
        self.outside = root / "outside"
        self.log = root / "outside" / "log"
        self.progress = root / "progress"
        for folder in (self.here, self.kept, self.outside):
            folder.mkdir(parents=True)
        os.environ.update(TMPDIR=str(self.outside), CLINVEIL_LEDGER=str(self.here / "ledger"))
        tempfile.tempdir = None
        os.chdir(self.outside)
        clinveil(f"demo --notes-only -o {self.input} --patients 24 --seed 3 {ONE}".split())
        notes: dict[str, list[dict[str, str]]] = defaultdict(list)
        for row in pq.read_table(self.input / "notes.parquet").to_pylist():
            of_patient = notes[row["patient_id"]]
            text = f"{f'Seen with {CANARY} today. ' * (len(notes) == 1)}{row['text'][-500:]}"
            of_patient.append({**row, "text": text, "group": "ab"[len(notes) % 2]})
        table = pa.Table.from_pylist([row for rows in notes.values() for row in rows[:2]])
        table = table.select(["note_id", "patient_id", "text", "group"])
        (self.input / "parts").mkdir()
        for name, start, end in (
            ("notes", 0, 40),
            ("more", 40, 48),
            ("parts/a", 0, 20),
            ("parts/b", 20, 40),
        ):
            pq.write_table(table.slice(start, end - start), self.input / f"{name}.parquet")
        self.undisturbed: dict[str, Undisturbed] = {}

    def arguments(self, name: str) -> list[str]:
        """Return the arguments of a command with real paths."""
        places = {
            "NOTES": "notes.parquet",
            "MORE": "more.parquet",
            "PARTS": "parts",
            "PATIENTS": "patients.parquet",
        }
        real = {word: str(self.input / file) for word, file in places.items()}
        return [
            real.get(word, word.replace("HERE", str(self.here))) for word in COMMANDS[name].split()
        ]

    def learn(self, name: str) -> None:
        """Run a command twice undisturbed, first in this process to fill its caches, and store what
        it does.
        """
        self.prepare(name)
        clinveil(self.arguments(name))
        before = self.files()
        self.prepare(name)
        time.sleep(1)  # so that the times in files differ
        began = time.monotonic()
        code = self.run(name)
        seconds = time.monotonic() - began
        operations = int(self.progress.read_text())
        files = {
            file: digest if before.get(file) == digest else ""
            for file, digest in self.files().items()
        }
        self.undisturbed[name] = Undisturbed(code, operations, seconds, files)
        shutil.copytree(self.here, self.kept / name)

    def prepare(self, name: str) -> None:
        """Empty the folders, and copy the output of the command that this one follows."""
        for path in (*self.here.iterdir(), *self.outside.iterdir()):
            remove(path)
        if name in AFTER:
            shutil.copytree(self.kept / AFTER[name], self.here, dirs_exist_ok=True)

    def files(self) -> dict[str, str]:
        """Return the names and hashes of the output; random digits are replaced by `*`, and these
        have no hash.
        """
        made: dict[str, str] = {}
        for name in files_in(self.here):
            known = RANDOM.sub("*", name)
            if Path(name).name != "lock":  # the next run takes it
                made[known] = (
                    "" if known != name or name.endswith("/") else sha256(self.here / name)
                )
        return made

    def run(self, name: str, disturb: Callable[[], object] = int, kill_at: int = 0) -> int:
        """Run a command in a forked process that calls `disturb` first; return its exit code, or
        minus its signal.
        """
        if child := os.fork():
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        code = 99
        try:
            os.dup2(os.dup2(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1), 2)
            with self.progress.open("w") as progress:
                operations = count_operations(kill_at, progress.fileno())
                signal.alarm(300)  # a run that takes longer hangs
                disturb()
                code = clinveil(self.arguments(name))
                sys.stdout.flush()
                os.pwrite(progress.fileno(), b"%d" % operations[0], 0)
        finally:
            os._exit(code)

    def faults(self) -> Iterator[str]:
        """Yield the faults of any run, disturbed or not."""
        for path in self.outside.rglob("*"):
            if path.is_file() and CANARY.encode() in path.read_bytes():
                yield f"note text in {'a message' if path == self.log else 'a temporary file'}"
        # A replaced run is removed in a folder `.OUT.….part`, which the next run removes.
        folders = [
            path
            for path in self.here.rglob("release")
            if path.is_dir() and ".part/" not in str(path)
        ]
        checks = [check for folder in folders for check in verify(folder)]
        checks += [
            Check(*each)
            for vault in self.here.rglob("vault")
            if logs(vault)
            for each in audit_checks(vault)
        ]
        yield from (f"not verified: {check.name}" for check in checks if not check.passed)

    def differences(self, name: str, code: int) -> Iterator[str]:
        """Yield the faults of a run that should have ended well, or found the output of the run
        before complete.
        """
        known = self.undisturbed[name]
        files = self.files()
        message = self.log.read_text().strip()
        missing = sorted(known.files.keys() - files)
        more = sorted(files.keys() - known.files)
        complete = (
            code == 2 and ("already exists" in message or "contains a " in message) and not missing
        )
        if code != known.code and not complete:
            yield f"exit {code}: {message[-200:]}"
        if missing or more:
            yield f"{'complete, ' * complete}missing {missing}, left {more}"
        elif differ := [
            file for file, digest in known.files.items() if digest and files[file] != digest
        ]:
            yield f"other bytes: {differ}"
        yield from self.faults()


def count_operations(kill_at: int, progress: int) -> list[int]:
    """Count the file operations of this process; write the last one to the descriptor `progress`
    before a kill.
    """
    count = [0]
    own = os.getpid()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        opened = (
            event == "open"
            and isinstance(arguments[2], int)
            and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if (event in OPERATIONS or opened) and os.getpid() == own:
            count[0] += 1
            if count[0] == kill_at:
                os.pwrite(progress, f"{event} {arguments}".encode(), 0)
                os.kill(own, signal.SIGKILL)

    sys.addaudithook(hook)
    return count


def killed(desk: Desk, name: str, random: Random) -> tuple[int, str]:
    """Run a command until a random operation or, one time in four, a random time; return exit code
    and point.
    """
    known = desk.undisturbed[name]
    if random.random() < 0.25 or known.operations == 0:
        seconds = random.uniform(0.001, known.seconds)
        code = desk.run(name, partial(signal.setitimer, signal.ITIMER_REAL, seconds))
        return code, f"after {seconds:.2f} of {known.seconds:.2f} s"
    at = random.randint(1, known.operations)
    return (
        desk.run(name, kill_at=at),
        f"at operation {at} of {known.operations}: {desk.progress.read_text()[:200]}",
    )


def limited(desk: Desk, name: str, random: Random) -> tuple[int, str]:
    """Run a command with a limit on the size of files; return exit code and limit."""
    most = int(10 ** random.uniform(1, 5))
    return (
        desk.run(name, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))),
        f"at {most} bytes",
    )


def filled(desk: Desk, name: str, random: Random) -> tuple[int, str]:
    """Run a command with its output on a small disk, and enlarge the disk; return exit code and
    free space.

    Where this user may not mount a disk, limit the size of files.
    """
    free = int(10 ** random.uniform(3.5, 6))
    used = 8192 + sum(path.stat().st_size + 8192 for path in desk.here.rglob("*"))
    if not mount(desk.here, f"size={used + free}"):
        return limited(desk, name, random)
    desk.prepare(name)
    code = desk.run(name)
    mount(desk.here, "remount,size=100m")
    return code, f"of {free} free bytes"


def mount(folder: Path, options: str) -> bool:
    """Mount a file system in memory, or change its size; return whether this user may."""
    return not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True
    ).returncode


WAYS = {KILLED: killed, LIMITED: limited, FULL: filled}
Result = tuple[str, str, str]  # command or file, way, and result; a fault begins with FAULT


def tried(desk: Desk, way: str, random: Random) -> Result:
    """Disturb a command, run it again, and return the result."""
    weights = [
        max(20, known.operations) / (1 + known.seconds) for known in desk.undisturbed.values()
    ]
    name = random.choices([*desk.undisturbed], weights)[0]
    desk.prepare(name)
    code, point = WAYS[way](desk, name, random)
    if code == desk.undisturbed[name].code:
        result = "ended"
        faults = [*desk.differences(name, code)]
    else:
        result = "ended when run again"
        faults = [*desk.faults()]
        if code not in ((-signal.SIGKILL, -signal.SIGALRM) if way == KILLED else (5,)):
            faults.append(f"exit {code}: {desk.log.read_text().strip()[-200:]}")
        temporary = {*desk.outside.iterdir()}
        again = [*desk.differences(name, desk.run(name))]
        again += [f"left {path.name}" for path in {*desk.outside.iterdir()} - temporary]
        faults += [f"run again, {fault}" for fault in again]
    if desk.here.is_mount():
        subprocess.run(["umount", str(desk.here)], check=True)
    text = f"FAULT {point}: {'; '.join(dict.fromkeys(faults))}".replace(str(desk.root), "")
    return name, way, text if faults else result


def parsers(desk: Desk) -> dict[str, Parser]:
    """Return for each kind of input a valid file and its reader, which has read the file."""

    def notes(path: Path) -> int:
        return sum(batch.num_rows for batch in open_corpus(path, NotesSettings()).batches())

    parquet = desk.input / "notes.parquet"
    table = pq.read_table(parquet, columns=["note_id", "patient_id", "text"]).slice(0, 8)
    csv.write_csv(table, desk.root / "notes.csv")
    csv.write_csv(table, desk.root / "notes.tsv", csv.WriteOptions(delimiter="\t"))
    (desk.root / "notes.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    )
    (desk.root / "vectors.txt").write_text(
        "3 2\n" + "".join(f"{word} {n} .5\n" for n, word in enumerate("abc"))
    )
    (desk.root / "settings.toml").write_text(
        "label = ['a']\n[channel]\nmin_patients = 5\n[vectors]\ndim = 50\n"
    )
    write_findings(desk.root / "findings.json", "test", [], seed=1)
    shutil.copytree(desk.input, desk.root, dirs_exist_ok=True)
    readers: dict[str, Callable[[Path], object]] = {
        **dict.fromkeys(("notes.parquet", "notes.csv", "notes.tsv", "notes.jsonl"), notes),
        "patients.parquet": read_patients,
        "settings.toml": lambda path: load_settings(ReleaseSettings, {}, path, ()),
        "findings.json": read_findings,
        "vectors.txt": load_vectors,
    }
    for name, reader in readers.items():
        reader(desk.root / name)
    return {name: ((desk.root / name).read_bytes(), reader) for name, reader in readers.items()}


def damaged(data: bytes, random: Random) -> bytes:
    """Return the bytes with a few flips, cuts, repeats or insertions."""
    inserted = [b"\x00", b"\xff\xfe", b'"', b"\n", b"{", "\ud800".encode("utf-8", "surrogatepass")]
    made = bytearray(data)
    for way in random.choices(range(4), k=random.randint(1, 6)):
        at = random.randrange(len(made) + 1)
        if way == 0 and at < len(made):
            made[at] ^= 1 << random.randrange(8)
        elif way == 1:
            del made[at : at + random.randint(1, 60)]
        elif way == 2:
            made[at:at] = made[at : at + random.randint(1, 60)]
        else:
            made[at:at] = random.choice(inserted)
    return bytes(made)


def read_damaged(parser: Parser, path: Path, random: Random) -> Result:
    """Read a damaged file; one that causes a fault is kept next to the folders of the tries."""
    path.write_bytes(damaged(parser[0], random))
    try:
        parser[1](path)
        return path.name, DAMAGED, "read"
    except ClinveilError as error:
        leak = CANARY in str(error)
        return path.name, DAMAGED, "FAULT note text in a message" if leak else "refused in one line"
    except Exception as error:  # noqa: BLE001  any other exception is the fault that is sought
        kept = path.parents[1].with_name(f"fault-{random.randrange(10**9)}-{path.name}")
        shutil.copy(path, kept)
        return path.name, DAMAGED, f"FAULT {type(error).__name__} ({kept.name})"


def lane(number: int, root: Path, seed: int, until: float) -> Counter[Result]:
    """Try commands and files in one process until the time is over; return how often each result
    occurred.
    """
    random = Random(f"{seed} {number}")
    results = Counter[Result]()
    os.dup2(os.dup2(os.open(os.devnull, os.O_WRONLY), 1), 2)
    del sys.modules["__main__"].__file__  # spawned workers need not import it
    desk = Desk(root / str(number))
    for name in COMMANDS:
        desk.learn(name)
    began = time.monotonic()
    for way, share in ((KILLED, 0.75), (LIMITED, 0.82), (FULL, 0.9)):
        while time.monotonic() < began + share * (until - began):
            results[tried(desk, way, random)] += 1
    kinds = parsers(desk)
    while time.monotonic() < until:
        for name, parser in kinds.items():
            results[read_damaged(parser, desk.root / name, random)] += 1
    return results


def table(results: Counter[Result], title: str, ways: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table with one row per command or file, and of its faults."""
    counts = Counter[tuple[str, str, str]]()
    for (name, way, result), times in results.items():
        if way in ways:
            counts[name, way, "fault" if result.startswith("FAULT") else result] += times
    columns = sorted(
        {(way, result) for _, way, result in counts},
        key=lambda column: (ways.index(column[0]), column),
    )
    yield f"| {title} | {' | '.join(f'{way}: {result}' for way, result in columns)} |"
    yield "| --- |" + " ---: |" * len(columns)
    for name in dict.fromkeys(name for name, _, _ in sorted(counts)):
        yield f"| {name} | {' | '.join(f'{counts[name, *column]:,}' for column in columns)} |"
    totals = (
        sum(counts[name, *column] for name in {name for name, _, _ in counts}) for column in columns
    )
    yield f"| in all | {' | '.join(f'{total:,}' for total in totals)} |\n"
    for (name, way, result), times in sorted(results.items()):
        if way in ways and result.startswith("FAULT"):
            yield f"- {name}, {way}, {times}×: {result.removeprefix('FAULT ')}"


def main() -> None:
    """Run one process per core, and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    how = parser.parse_args()
    cores = os.cpu_count() or 1
    until = time.monotonic() + 60 * how.minutes
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(cores, mp_context=get_context("fork")) as pool,
    ):
        run = partial(lane, root=Path(folder), seed=how.seed, until=until)
        results = sum(pool.map(run, range(cores)), Counter[Result]())
    print(
        f"`python benchmarks/torture.py --minutes {how.minutes:g} --seed {how.seed}`; {cores}"
        f" cores, {date.today()}.\n"
    )
    print(
        "\n".join(
            [
                *table(results, "Command", [KILLED, LIMITED, FULL]),
                *table(results, "File", [DAMAGED]),
            ]
        )
    )


if __name__ == "__main__":
    main()
