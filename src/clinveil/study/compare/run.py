"""Make and measure each release of a comparison, then write the table and the page."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core.errors import InputError, MissingExtra, UsageError
from clinveil.core.files import owner_only, private_folder, private_text, read_json, refuse_nested, remove
from clinveil.core.finding import Finding
from clinveil.core.runfolder import LOCK, Kind, run_folder, run_hash
from clinveil.core.settings import NotesSettings
from clinveil.core.tokens import words
from clinveil.core.types import Say
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus, memory_corpus, rows, rows_with
from clinveil.corpus.open import open_corpus
from clinveil.corpus.write import write_corpus
from clinveil.releases.outcome import Outcome, Places
from clinveil.releases.pipeline import dry_run, release
from clinveil.releases.preflight import MeasuredWith
from clinveil.releases.producer import producers
from clinveil.scale import processes
from clinveil.study.compare.settings import HALVES, Amount, Candidate, CompareSettings, candidates
from clinveil.utility.pairs import read_pairs

MARK, NOTES, RUNS = "SECRET.txt", "notes.parquet", "runs"
SECRET = """SECRET: all of this comparison. It must not leave.

notes.parquet holds the notes. runs/ holds a run for each release that was compared, made with a public seed, so that
anyone can undo it. Table, figure, page and findings describe how well attacks on these notes work.
"""
FEWEST = 2  # patients with a public text
SEED_GATE = "no test seed"  # always fails in a comparison


@dataclass(frozen=True)
class Measured:
    """What was measured of one release.

    Attributes:
        name, kind: of the release. findings: all of its findings. seconds: wall time.
        distinct: different words in the released notes.
        gates: how many gates had each outcome. failed: names of failed gates, without the test seed's.
        why: the reason where the release could not be made; then there are no findings.
    """

    name: str
    kind: str
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    seconds: float = 0.0
    distinct: int = 0
    gates: Mapping[str, int] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**vars(self), "findings": [finding.as_dict() for finding in self.findings]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measured:
        """The result of `as_dict`. Raises TypeError, ValueError or KeyError for anything else."""
        findings = tuple(Finding.from_dict(item) for item in data["findings"])
        return cls(**{**data, "findings": findings, "failed": tuple(data["failed"])})


@dataclass(frozen=True)
class Comparison:
    """The result of `clinveil compare`.

    Attributes:
        settings: what was compared how. amount: of the notes. releases: one for each row of the table.
        folder: where table, page and findings are; all of it is secret.
    """

    settings: CompareSettings
    amount: Amount
    releases: tuple[Measured, ...]
    folder: Path


def compare_releases(notes: Path, out: Path, settings: CompareSettings, say: Say = lambda line: None) -> Comparison:
    """Make a release of each kind, and of each named setting, from the same notes, and measure all of them.

    The same call again skips finished releases. All of `out` is secret: releases are made with a public seed.

    Args:
        notes: a file or a folder of notes. out: the folder of the comparison.

    Raises:
        UsageError: no label, settings that do not fit, or `out` is something else. InputError: notes that do not fit,
            for example of fewer than 50 patients.
    """
    from clinveil.study.compare.table import write_outputs

    settings.refuse()
    refuse_nested(OUT=out, NOTES=notes)
    assert settings.label is not None
    keep = (settings.match,) if settings.match else ()
    source = open_corpus(notes, settings.columns, label=(settings.label,), keep=keep)
    for pairs in settings.pairs:
        read_pairs(pairs)
    with owner_only(), run_folder(out, Kind("comparison", notes={MARK: SECRET}, known=_is_ours)):
        if settings.force:
            remove(out / RUNS)
        try:
            roles, amount = copy_notes(source, out / NOTES, settings)
            plan = candidates(settings, roles, amount)
            public = public_texts(settings, out / NOTES, roles)
            bench = _Bench(out, MeasuredWith(settings.pairs, public), (*settings.pairs, settings.known))
            measured = bench.measure_all(plan, settings.workers, say)
        except (InputError, UsageError):
            if not any((out / RUNS).glob("*.json")):  # nothing to resume
                remove(out / NOTES)
                remove(out / RUNS)
            raise
        comparison = Comparison(settings, amount, tuple(measured), out)
        write_outputs(comparison)
    return comparison


def _silent(line: str) -> None:
    """Discard the message."""


def _is_ours(out: Path) -> bool:
    """Whether a comparison may work in a folder."""
    try:
        marked = (out / MARK).read_text(encoding="utf-8").startswith(SECRET.partition("\n")[0])
        names = {path.name for path in out.iterdir()}
    except (OSError, ValueError):
        return False
    return marked and (NOTES in names or names <= {MARK, LOCK})


@dataclass(frozen=True)
class _Bench:
    """Where releases are made and measured.

    Attributes:
        inputs: files that the measures read.
    """

    out: Path
    measured_with: MeasuredWith
    inputs: tuple[Path | None, ...]

    def measure_all(self, plan: Sequence[Candidate], workers: int, say: Say) -> list[Measured]:
        """Measure each release that has not been measured, several at a time; shared word vectors come first."""
        private_folder(self.out / RUNS)
        done, waiting = self._sort_out(plan, say)
        while waiting:
            first = {_training(each) or each.name: each for each in reversed(waiting)}
            wave = [each for each in waiting if each in first.values() or self._vectors(plan, each)]
            say(f"measure {', '.join(each.name for each in wave)}")
            tasks = [_Task(self, each, self._vectors(plan, each), say if workers == 1 else _silent) for each in wave]
            for result in processes(min(workers, len(tasks)), ahead=len(tasks))(_Task.run, tasks):
                measured = Measured.from_dict(result)
                say(f"{measured.name}: measured in {measured.seconds:.0f} s")
                done[measured.name] = measured
            waiting = [each for each in waiting if each not in wave]
        return [done[each.name] for each in plan]

    def _sort_out(self, plan: Sequence[Candidate], say: Say) -> tuple[dict[str, Measured], list[Candidate]]:
        """Return results of earlier runs and of releases that lack an extra, and the releases to measure."""
        done: dict[str, Measured] = {}
        waiting = []
        for each in plan:
            if (measured := self.finished(each)) is not None:
                say(f"{each.name}: measured before")
                done[each.name] = measured
                continue
            try:
                deque(dry_run(self.out / NOTES, each.settings), maxlen=0)  # refuses what does not fit
                waiting.append(each)
            except MissingExtra as error:
                done[each.name] = Measured(each.name, each.settings.kind, why=str(error))
        return done, waiting

    def _vectors(self, plan: Sequence[Candidate], candidate: Candidate) -> Path | None:
        """Word vectors that another release of the comparison trained in the same way."""
        training = _training(candidate)
        alike = (each for each in plan if training and each != candidate and _training(each) == training)
        folders = (self.out / RUNS / each.name / "vault" / "vectors" for each in alike if self.finished(each))
        return next((folder for folder in folders if folder.exists()), None)

    def finished(self, candidate: Candidate) -> Measured | None:
        """The result of an earlier run with the same inputs."""
        data = read_json(self.out / RUNS / f"{candidate.name}.json")
        try:
            return Measured.from_dict(data["measured"]) if data["question"] == self._question(candidate) else None
        except (TypeError, ValueError, KeyError):
            return None

    def _question(self, candidate: Candidate) -> str:
        settings = candidate.settings
        return run_hash(settings, self.out / NOTES, settings.identifiers.patients, *self.inputs)

    def measure(self, candidate: Candidate, vectors: Path | None, say: Say) -> Measured:
        """Make a release, measure it, and record the result."""
        began, runs = time.perf_counter(), self.out / RUNS
        how: dict[str, Any] = {"vectors": vectors, "measured_with": self.measured_with, "say": say}
        outcome = release(self.out / NOTES, runs / candidate.name, candidate.settings, **how)
        measured = _of(candidate, outcome, time.perf_counter() - began)
        record = {"question": self._question(candidate), "measured": measured.as_dict()}
        private_text(runs / f"{candidate.name}.json", json.dumps(record, allow_nan=False))
        remove(runs / f".{candidate.name}.replaced")
        return measured


@dataclass(frozen=True)
class _Task:
    """One release to measure, in this process or in another one."""

    bench: _Bench
    candidate: Candidate
    vectors: Path | None
    say: Say

    def run(self) -> dict[str, Any]:
        """Measure it; return a `Measured` as a dictionary, which can be sent between processes."""
        with owner_only():
            return self.bench.measure(self.candidate, self.vectors, self.say).as_dict()


def _training(candidate: Candidate) -> str:
    """How a release trains word vectors: releases that train alike can share them. Empty where they cannot."""
    settings, how = candidate.settings, candidate.settings.vectors
    if "vectors" not in producers.get(settings.kind).uses or any(how.places().values()):
        return ""
    return json.dumps([how.flat(), settings.identifiers.flat(), settings.phi], sort_keys=True)


def _of(candidate: Candidate, outcome: Outcome, seconds: float) -> Measured:
    kind, gates = candidate.settings.kind, [gate for gate in outcome.gates if gate.name != SEED_GATE]
    counts = Counter(str(gate.outcome) for gate in gates)
    failed = tuple(gate.name for gate in gates if not gate.passed)
    return Measured(candidate.name, kind, outcome.findings, seconds, _distinct_words(outcome.folder), counts, failed)


def _distinct_words(folder: Places) -> int:
    """How many different words the released notes contain."""
    manifest = read_json(folder.vault / "manifest.json")["notes"]
    roles = NotesSettings(text=manifest["text"], id=manifest["id"], preset="none")
    corpus = open_corpus(folder.refused / manifest["file"], roles)
    return len({word for note in rows(corpus) for word in words(note.text)})


def copy_notes(source: Corpus, path: Path, how: CompareSettings) -> tuple[NotesSettings, Amount]:
    """Write the notes to compare on as Parquet: all of them, one half of the patients, or at most `max_notes`.

    Returns:
        The roles of the columns of the written file, and how much was written.

    Raises:
        InputError: no note is left, or the notes cannot be read.
    """
    chosen = _chosen(source, how)
    who: set[str] = set()
    notes = characters = 0

    def kept() -> Iterator[pa.RecordBatch]:
        nonlocal notes, characters
        for batch in source.batches():
            taken = batch.filter(pc.is_in(_patients(batch), value_set=chosen)) if chosen is not None else batch
            notes += taken.num_rows
            characters += pc.sum(pc.utf8_length(taken.column(TEXT))).as_py() or 0
            who.update(_patients(taken).to_pylist())
            yield taken

    columns = source.columns
    write_corpus(kept(), path, columns, ".parquet")
    path.chmod(0o600)
    roles = NotesSettings(text=columns.text, id=columns.note_id, patient=columns.patient_id, preset="none")
    return roles, Amount(notes, len(who), characters // 6)


def _patients(batch: pa.RecordBatch) -> pa.Array:
    """The patient of each note; a note without one is its own patient."""
    return pc.coalesce(batch.column(PATIENT_ID), batch.column(NOTE_ID))


def _chosen(source: Corpus, how: CompareSettings) -> pa.Array | None:
    """Return the patients to use, or None for all. The two halves have no patient in common."""
    if how.half is None and how.max_notes is None:
        return None
    notes = Counter(name for batch in source.batches() for name in _patients(batch).to_pylist())
    names = sorted(notes)
    order = [names[i] for i in np.random.default_rng([how.seed, 0]).permutation(len(names))]
    if how.half is not None:
        order = order[HALVES.index(how.half) :: len(HALVES)]
    ends = np.cumsum([notes[name] for name in order])
    taken = [name for name, end in zip(order, ends, strict=True) if how.max_notes is None or end <= how.max_notes]
    return pa.array(taken or order[:1], pa.string())


def public_texts(how: CompareSettings, notes: Path, roles: NotesSettings) -> Corpus | None:
    """Return the public texts with the patient ids of the notes, or None without `--known`.

    Raises:
        InputError: fewer than two patients have a public text, or the texts cannot be read.
    """
    if how.known is None:
        return None
    match = how.match
    keep = (match,) if match else ()
    patients: dict[str, str] = {}
    for note, values in rows_with(open_corpus(notes, roles, keep=keep), *keep):
        patients.setdefault(str(values[0]) if match else note.patient_id, note.patient_id)
    found = []
    for text, values in rows_with(open_corpus(how.known, NotesSettings(), keep=keep), *keep):
        patient = patients.get(str(values[0]) if match else text.patient_id)
        found.append((text.note_id, patient or f"nobody {text.note_id}", text.text))
    if len({patient for _, patient, _ in found} & set(patients.values())) < FEWEST:
        what = f"fewer than {FEWEST} patients of the notes have a text in it"
        raise InputError(what, where=how.known.name, hint="pass --match with a column of both")
    return memory_corpus(found)
