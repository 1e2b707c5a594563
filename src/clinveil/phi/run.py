"""Notes freed of identifiers, as one run: what was found is counted, and its secrets go to a vault."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from clinveil.core.errors import GateError, UsageError
from clinveil.core.files import Maker, default_vault, private_text, refuse_places, remove, whole
from clinveil.core.keys import Key
from clinveil.core.progress import track
from clinveil.core.runfolder import KEY, LOCK, Kind, run_folder
from clinveil.core.types import Say
from clinveil.corpus.open import NotesCorpus, open_corpus
from clinveil.corpus.people import read_patients, write_patients
from clinveil.corpus.write import place_in, write_corpus
from clinveil.phi.decisions import Decisions
from clinveil.phi.deidentifier import RAISED, Deidentified, Deidentifier
from clinveil.phi.emulated import EmulatedRemover
from clinveil.phi.passes import deidentify_corpus
from clinveil.phi.settings import DeidentifySettings
from clinveil.scale import processes

MAKER = Maker("deidentify")
RECORD, SPANS = "deidentify.json", "spans.jsonl"
MOST_RAISED = 0.01  # share of the notes
README = """The key, and what was found, of a run of `clinveil deidentify`. SECRET: none of this may leave.

key.bin          all surrogates and date offsets come from it; keep it to treat later notes of the same patients alike
deidentify.json  what was run on which notes, and counts; no note text
spans.jsonl      with --spans: every identifier that was found, with its text
review/          of clinveil review: what each reviewer decided; for clinveil deidentify --decisions
missed.parquet   with --miss-rate: the patients whose names were left in place, the truth of the attacks
surrogates.parquet  with --miss-rate and --mode replace: the others under their surrogate names

The notes that were written are secret too: what the detectors miss still stands in them.
"""


@dataclass
class Counts:
    """What became of the notes of a run.

    Attributes:
        read, written: notes; `skipped` says why the others were not written.
        labels, detectors: identifiers, by what they are and by who found them.
        tagged: identifiers that got a tag, as no surrogate could be made.
    """

    read: int = 0
    written: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    detectors: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    tagged: Counter[str] = field(default_factory=Counter)

    def add(self, done: Deidentified) -> None:
        """Add a batch."""
        self.written += done.batch.num_rows
        self.read += done.batch.num_rows + sum(done.skipped.values())
        self.labels += done.counts
        self.detectors += done.by_detector
        self.skipped += done.skipped
        self.tagged += done.tagged

    def lines(self) -> Iterator[str]:
        """The counts for people."""
        yield f"{self.written} of {self.read} notes written"
        for reason, count in self.skipped.items():
            yield f"  not written, {reason}: {count}"
        for label, count in self.labels.most_common():
            tagged = f" ({self.tagged[label]} as a tag: no surrogate could be made)" if self.tagged[label] else ""
            yield f"  {label:12} {count}{tagged}"


def deidentify_notes(
    notes: Path, out: Path, settings: DeidentifySettings, *, say: Say, vault: Path | None = None
) -> Counts:
    """Remove, replace or tag the identifiers of notes; what is missed stays, so the notes that are written are secret.

    Args:
        vault: the folder of key, record and truth; OUT.vault if None. Its key is used again if it has one.

    Raises:
        UsageError: places or settings that do not fit. InputError: notes that do not fit.
        GateError: the detectors failed on more than 1 % of the notes; nothing is written.
    """
    secrets, patients = vault or default_vault(out), settings.identifiers.patients
    refuse_places(out, MAKER, force=settings.force, vault=secrets, read={"NOTES": notes})
    refuse_places(out, MAKER, force=settings.force, read={"--patients": patients})
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    decisions = _decisions(settings, corpus)
    with run_folder(secrets, VAULT) as folder, whole(out, force=settings.force, maker=MAKER) as part:
        # The vault's own key where it has one, so that later notes of a patient are treated as the earlier ones.
        key = folder.key() if settings.seed is None else Key.from_seed(settings.seed)
        remover = _remover(settings, key, decisions)
        with _spans_file(secrets, wanted=settings.spans) as spans:
            counts = _write(settings, corpus, remover, *place_in(part, out, corpus.suffix), spans, say)
            _refuse_failures(counts)
        _keep(secrets, key, notes, settings, counts)
        _keep_truth(secrets, remover, say)
    return counts


def _ours(vault: Path) -> bool:
    """Whether a folder is a vault of this command: a README.txt of somebody's own may lie in it."""
    names = {item.name for item in vault.iterdir()} if vault.is_dir() else {vault.name}
    left = {LOCK, SPANS, *(name for name in names if name.startswith(f".{SPANS}."))}  # by a run that was killed
    return RECORD in names or not names - {KEY, *(left if KEY in names else {LOCK})}


VAULT = Kind("vault of clinveil deidentify", known=_ours)


def _decisions(settings: DeidentifySettings, corpus: NotesCorpus) -> Decisions | None:
    """What reviewers decided, if it is about these notes. Raises InputError if it is not."""
    if not settings.decisions:
        return None
    if settings.miss_rate is not None:
        raise UsageError("--decisions has no say in what --miss-rate emulates", remedy="give one of the two")
    decisions = Decisions.read(*settings.decisions)
    decisions.refuse_others(corpus)
    return decisions


def _remover(settings: DeidentifySettings, key: Key, decisions: Decisions | None) -> Deidentifier | EmulatedRemover:
    how = settings.identifiers
    patients = read_patients(how.patients) if how.patients else None
    if settings.miss_rate is None:
        return Deidentifier.of(how, key, patients=patients, keep_spans=settings.spans, revise=decisions)
    if patients is None:
        raise UsageError("--miss-rate needs the names that it is about", remedy="--patients patients.parquet")
    return EmulatedRemover(key, patients, settings.miss_rate, how.mode, keep_spans=settings.spans)


def _write(
    settings: DeidentifySettings,
    corpus: NotesCorpus,
    remover: Deidentifier | EmulatedRemover,
    path: Path,
    suffix: str,
    spans: TextIO | None,
    say: Say,
) -> Counts:
    counts = Counts()
    deidentifier = remover if isinstance(remover, Deidentifier) else remover.deidentifier
    done = deidentify_corpus(corpus, deidentifier, processes(settings.workers))
    shown = track(done, "notes", say, size=lambda each: each.batch.num_rows)
    write_corpus(_counted(shown, counts, spans), path, corpus.columns, suffix)
    counts.read += sum(corpus.skipped.values())
    counts.skipped += corpus.skipped
    return counts


def _counted(done: Iterable[Deidentified], counts: Counts, spans: TextIO | None) -> Iterator[pa.RecordBatch]:
    for each in done:
        counts.add(each)
        for found in each.spans or () if spans else ():
            span = found.span
            line = {"note_id": found.note_id, "start": span.start, "end": span.end, "label": span.label}
            line |= {"text": found.text, "detector": span.detector, "score": span.score, "why": span.why}
            spans.write(json.dumps(line, ensure_ascii=False) + "\n")  # type: ignore[union-attr]
        yield each.batch


@contextmanager
def _spans_file(secrets: Path, *, wanted: bool) -> Iterator[TextIO | None]:
    if not wanted:
        yield None
        return
    with whole(secrets / SPANS, force=True) as part, part.open("w", encoding="utf-8") as file:
        yield file


def _refuse_failures(counts: Counts) -> None:
    raised = counts.skipped[RAISED]
    if raised > MOST_RAISED * counts.read:
        remedy = "nothing was written; report it, without any note text"
        raise GateError(f"the detectors failed on {raised} of {counts.read} notes", remedy=remedy)


def _keep(secrets: Path, key: Key, notes: Path, settings: DeidentifySettings, counts: Counts) -> None:
    """The record of the run, in the vault."""
    record = {
        "secret": True,
        "version": version("clinveil"),
        "test_seed": key.test_seed,
        "key_commitment": key.commitment,
        "notes": str(notes.absolute()),
        "folder": str(Path.cwd()),
        "settings": settings.flat(),
        "mode": settings.identifiers.mode,
        "known_patients": settings.identifiers.patients is not None,
        "miss_rate": settings.miss_rate,
        "notes_read": counts.read,
        "notes_written": counts.written,
        "skipped": dict(counts.skipped),
        "spans_by_label": dict(counts.labels.most_common()),
        "spans_by_detector": dict(counts.detectors.most_common()),
        "tagged_for_want_of_a_surrogate": dict(counts.tagged),
    }
    private_text(secrets / RECORD, json.dumps(record, indent=2) + "\n")
    private_text(secrets / "README.txt", README)


def _keep_truth(secrets: Path, remover: Deidentifier | EmulatedRemover, say: Say) -> None:
    """Whose names an emulated remover left, and the surrogates of the others: what the attacks are scored against."""
    if not isinstance(remover, EmulatedRemover):
        return
    truth = {"missed": remover.missed, "surrogates": remover.surrogate_patients()}
    say(f"emulated remover: the names of {len(remover.missed)} patients were left in place")
    say("nothing but the known patients' own names was treated: these notes are for attacks and studies only")
    for name, patients in truth.items():
        remove(secrets / f"{name}.parquet")  # an earlier run's truth would be a wrong one
        if patients:
            with whole(secrets / f"{name}.parquet") as part:
                write_patients(patients, part)
