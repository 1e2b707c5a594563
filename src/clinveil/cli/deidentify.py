"""`clinveil deidentify`: find PHI in notes and remove, replace or tag it."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from clinveil.cli.options import Out, Vault, settings_command
from clinveil.cli.progress import say_unless
from clinveil.core.outputs import Maker
from clinveil.core.settings import FORCE, KEEP, LABEL, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.phi.settings import PhiSettings

if TYPE_CHECKING:
    import pyarrow as pa

    from clinveil.core.keys import Key
    from clinveil.corpus.open import NotesCorpus
    from clinveil.phi.deidentifier import Deidentified, Deidentifier, Found
    from clinveil.phi.emulated import EmulatedRemover

app = typer.Typer(add_completion=False)
MAKER = Maker("deidentify")
KEY_FILE, RECORD, SPANS = "key.bin", "deidentify.json", "spans.jsonl"
OTHER = "name another --vault, or a new one"
MOST_RAISED = 0.01  # share of the notes
README = """The key, and what was found, of a run of `clinveil deidentify`. SECRET: none of this may leave.

key.bin          all surrogates and date offsets come from it; keep it to treat later notes of the same patients alike
deidentify.json  what was run, and counts; no note text
spans.jsonl      with --spans: every identifier that was found, with its text
missed.parquet   with --miss-rate: the patients whose names were left in place, the truth of the attacks
surrogates.parquet  with --miss-rate and --mode replace: the others under their surrogate names

The notes that were written are secret too: what the detectors miss still stands in them.
"""


class DeidentifySettings(Settings):
    """Everything that `clinveil deidentify` can be told."""

    identifiers: PhiSettings = group(PhiSettings)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE

    spans: bool = flag(False, "Also write spans.jsonl (what was found, with its text) to the vault.")
    miss_rate: float | None = flag(
        None,
        "Emulate a remover (paper B): only --patients' own names go, those of this share of them stay.",
        ge=0,
        le=1,
    )


@dataclass
class _Totals:
    """Counts over all batches."""

    read: int = 0
    written: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    detectors: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    tagged: Counter[str] = field(default_factory=Counter)

    def add(self, done: Deidentified) -> None:
        self.written += done.batch.num_rows
        self.read += done.batch.num_rows + sum(done.skipped.values())
        self.labels += done.counts
        self.detectors += done.by_detector
        self.skipped += done.skipped
        self.tagged += done.tagged


@settings_command(app, DeidentifySettings, name="deidentify")
def deidentify(
    settings: DeidentifySettings,
    notes: Annotated[Path, typer.Argument(help="Notes: a file or a folder.")],
    out: Out,
    vault: Vault = None,
) -> None:
    """Find PHI in notes and remove, replace or tag it; what is missed stays, so the output is secret."""
    from clinveil.core.files import default_vault, refuse_existing, refuse_nested, whole
    from clinveil.corpus.open import open_corpus

    secrets = vault or default_vault(out)
    refuse_nested(OUT=out, the_vault=secrets, NOTES=notes)
    refuse_nested(OUT=out, **{"--patients": settings.identifiers.patients})
    refuse_existing(out, force=settings.force, maker=MAKER)
    os.umask(0o077)  # half-written notes are as secret as whole ones
    say = say_unless(settings.quiet)
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    with _open_vault(secrets, settings.seed) as key, whole(out, force=settings.force, maker=MAKER) as part:
        remover = _remover(settings, key)
        with _spans_file(secrets, wanted=settings.spans) as spans:
            totals = _run(settings, corpus, remover, part, out, spans)
            _gate(totals)
        _keep(secrets, key, settings, totals)
        _keep_truth(secrets, remover, say)
    _report(totals, say)
    typer.echo("SECRET: what the detectors missed still stands in these notes", err=True)


@contextmanager
def _open_vault(secrets: Path, seed: int | None) -> Iterator[Key]:
    """The vault for this run alone, and its key; what was made of them for a run that fails is removed again."""
    from clinveil.core.files import locked, private_folder, remove

    there = secrets.exists()
    lock, path = private_folder(secrets) / "lock", secrets / KEY_FILE
    _refuse_foreign(secrets)
    with locked(lock):
        new = not there and list(secrets.iterdir()) == [lock]
        new_key = not path.exists()
        try:
            yield _key(seed, path)
        except BaseException:
            if new or new_key:
                remove(secrets if new else path)
            raise


def _refuse_foreign(secrets: Path) -> None:
    """Raise UsageError for a folder that is no vault of this command: a README.txt of somebody's own may lie in it."""
    from clinveil.core.errors import UsageError

    names = {item.name for item in secrets.iterdir()} if secrets.is_dir() else set()
    left = {"lock", SPANS, *(name for name in names if name.startswith(f".{SPANS}."))}  # by a run that was killed
    if RECORD not in names and names - {KEY_FILE, *(left if KEY_FILE in names else {"lock"})}:
        raise UsageError("is there already, and is no vault of clinveil deidentify", where=secrets.name, remedy=OTHER)


def _key(seed: int | None, path: Path) -> Key:
    """The vault's own key where there is one, so that later notes of a patient are treated as the earlier ones."""
    from clinveil.core.keys import Key

    if seed is not None:
        typer.echo("TEST SEED: not for release", err=True)
        return Key.from_seed(seed)
    if not path.exists():
        Key.generate().save(path)
    return Key.load(path)


def _remover(settings: DeidentifySettings, key: Key) -> Deidentifier | EmulatedRemover:
    from clinveil.core.errors import UsageError
    from clinveil.corpus.people import read_patients
    from clinveil.phi.deidentifier import Deidentifier
    from clinveil.phi.emulated import EmulatedRemover

    patients = read_patients(settings.identifiers.patients) if settings.identifiers.patients else None
    if settings.miss_rate is None:
        return Deidentifier(key, mode=settings.identifiers.mode, patients=patients, keep_spans=settings.spans)
    if patients is None:
        raise UsageError("--miss-rate needs the names that it is about", remedy="--patients patients.parquet")
    return EmulatedRemover(key, patients, settings.miss_rate, settings.identifiers.mode, keep_spans=settings.spans)


def _run(
    settings: DeidentifySettings,
    corpus: NotesCorpus,
    remover: Deidentifier | EmulatedRemover,
    part: Path,
    out: Path,
    spans: TextIO | None,
) -> _Totals:
    from clinveil.phi.deidentifier import Deidentifier, deidentify_corpus
    from clinveil.scale import processes

    deidentifier = remover if isinstance(remover, Deidentifier) else remover.deidentifier
    totals = _Totals()
    done = deidentify_corpus(corpus, deidentifier, processes(settings.workers))
    _write(_counted(done, totals, spans, quiet=settings.quiet), part, out, corpus)
    totals.read += sum(corpus.skipped.values())
    totals.skipped += corpus.skipped
    return totals


def _write(batches: Iterable[pa.RecordBatch], part: Path, out: Path, corpus: NotesCorpus) -> None:
    """One file where OUT has a known suffix; else a folder, of .txt where the notes were one, or with one file."""
    from clinveil.corpus.file_format import suffix_of
    from clinveil.corpus.write import write_corpus

    suffix = suffix_of(out) or corpus.suffix
    path = part
    if not suffix_of(out) and corpus.suffix:
        part.mkdir(mode=0o700)
        path = part / f"notes{suffix}"
    write_corpus(batches, path, corpus.columns, suffix)


def _counted(
    done: Iterable[Deidentified], totals: _Totals, spans: TextIO | None, *, quiet: bool
) -> Iterator[pa.RecordBatch]:
    for each in done:
        totals.add(each)
        for found in each.spans or () if spans else ():
            spans.write(json.dumps(_line(found), ensure_ascii=False) + "\n")  # type: ignore[union-attr]
        if sys.stderr.isatty() and not quiet:
            typer.echo(f"{totals.read} notes", err=True)
        yield each.batch


def _line(found: Found) -> dict[str, Any]:
    span = found.span
    return {
        "note_id": found.note_id,
        "start": span.start,
        "end": span.end,
        "label": span.label,
        "text": found.text,
        "detector": span.detector,
        "score": span.score,
    }


@contextmanager
def _spans_file(secrets: Path, *, wanted: bool) -> Iterator[TextIO | None]:
    if not wanted:
        yield None
        return
    from clinveil.core.files import whole

    with whole(secrets / SPANS, force=True) as part, part.open("w", encoding="utf-8") as file:
        yield file


def _gate(totals: _Totals) -> None:
    from clinveil.core.errors import GateError
    from clinveil.phi.deidentifier import RAISED

    raised = totals.skipped[RAISED]
    if raised > MOST_RAISED * totals.read:
        remedy = "nothing was written; report it, without any note text"
        raise GateError(f"the detectors failed on {raised} of {totals.read} notes", remedy=remedy)


def _keep(secrets: Path, key: Key, settings: DeidentifySettings, totals: _Totals) -> None:
    """The key and the record of the run, in the vault."""
    from importlib.metadata import version

    from clinveil.core.files import private_text

    record = {
        "secret": True,
        "version": version("clinveil"),
        "test_seed": key.test_seed,
        "key_commitment": key.commitment,
        "mode": settings.identifiers.mode,
        "known_patients": settings.identifiers.patients is not None,
        "miss_rate": settings.miss_rate,
        "notes_read": totals.read,
        "notes_written": totals.written,
        "skipped": dict(totals.skipped),
        "spans_by_label": dict(totals.labels.most_common()),
        "spans_by_detector": dict(totals.detectors.most_common()),
        "tagged_for_want_of_a_surrogate": dict(totals.tagged),
    }
    private_text(secrets / RECORD, json.dumps(record, indent=2) + "\n")
    private_text(secrets / "README.txt", README)


def _keep_truth(secrets: Path, remover: Deidentifier | EmulatedRemover, say: Callable[[str], None]) -> None:
    """Whose names an emulated remover left, and the surrogates of the others: what the attacks are scored against."""
    from clinveil.core.files import remove, whole
    from clinveil.corpus.people import write_patients
    from clinveil.phi.emulated import EmulatedRemover

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


def _report(totals: _Totals, say: Callable[[str], None]) -> None:
    say(f"{totals.written} of {totals.read} notes written")
    for reason, count in totals.skipped.items():
        say(f"  not written, {reason}: {count}")
    for label, count in totals.labels.most_common():
        tagged = f" ({totals.tagged[label]} as a tag: no surrogate could be made)" if totals.tagged[label] else ""
        say(f"  {label:12} {count}{tagged}")
