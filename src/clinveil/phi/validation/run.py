"""Run `clinveil validate`: stages with stored results, so that an interrupted run resumes, and evaluation of marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.random import default_rng

from clinveil.core.errors import InputError
from clinveil.core.files import owner_only, private_folder, private_text, refuse_nested
from clinveil.core.finding import Finding, read_findings, write_findings
from clinveil.core.keys import Key
from clinveil.core.progress import track
from clinveil.core.runfolder import Kind, RunFolder, fingerprint, run_folder, run_hash
from clinveil.core.spans import Span
from clinveil.core.types import Say
from clinveil.corpus.corpus import Note, rows
from clinveil.corpus.open import OpenedCorpus, open_corpus
from clinveil.corpus.people import read_patients
from clinveil.phi.settings import ValidateSettings
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.passes import found_spans
from clinveil.phi.validation.results import marked_findings, report
from clinveil.phi.validation.sample import Draw, suspected, usual_forms
from clinveil.phi.validation.sheet import read_design, read_marks, write_sheet
from clinveil.phi.validation.survival import Survival
from clinveil.scale import processes

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

FINDINGS, REPORT, RECALL = "findings.json", "report.md", "recall.json"
README = """Estimates of detection recall on your own notes. CONFIDENTIAL: do not share this folder.

report.md      the results
findings.json  the same results for programs
spots.html     the sample to annotate in a browser, by keyboard (works offline); CONTAINS NOTE TEXT
spots.csv      the same sample as a table, to annotate in the column mark; CONTAINS NOTE TEXT
design.json    the sampling design; required by clinveil validate --marked
recall.json    recall from the annotations, after clinveil validate --marked MARKS OUT
"""
_OWN = frozenset({"stages", FINDINGS, REPORT, RECALL, "spots.csv", "spots.html", "design.json"})
KIND = Kind("folder of clinveil validate", own=_OWN, notes={"README.txt": README})


@dataclass(frozen=True)
class Validation:
    """State shared by the stages of a run."""

    settings: ValidateSettings
    corpus: OpenedCorpus
    patients: Mapping[str, Patient] | None = field(repr=False)
    seed: int
    say: Say

    def notes(self, action: str) -> Iterator[Note]:
        """Yield the notes from the start."""
        return track(rows(self.corpus), f"notes {action}", self.say)

    def engine(self, *, feed: bool) -> Iterator[tuple[Note, list[Span]]]:
        """Yield each note with all spans that the engine detects, with or without the known patients."""
        patients = self.patients if feed else None
        key = Key.from_seed(self.seed)  # temporary; its output is discarded
        engine = Deidentifier.of(self.settings.identifiers, key, patients=patients, keep_spans=True)
        return found_spans(self.corpus, engine, processes(self.settings.workers))


def validate_notes(notes: Path, out: Path, settings: ValidateSettings, *, say: Say) -> tuple[list[Finding], int]:
    """Estimate recall on notes without annotations, and draw the sample of locations to annotate.

    Returns the findings and the seed. Without a configured seed, it is derived from the notes, so that a run can
    resume.

    Args:
        out: a private folder, which will contain note text.

    Raises:
        UsageError: conflicting paths or settings.
        InputError: invalid notes or patients.
    """
    feed = settings.identifiers.patients
    refuse_nested(OUT=out, NOTES=notes, patients=feed)
    corpus, hashed = open_corpus(notes, settings.notes), fingerprint(notes)
    seed = int(hashed[:8], 16) if settings.seed is None else settings.seed
    run = Validation(settings, corpus, read_patients(feed) if feed else None, seed, say)
    asked = run_hash(settings, hashed, feed, str(seed), free={"workers", "quiet", "force", "seed", "patients"})
    with owner_only(), run_folder(out, KIND, asked, force=settings.force) as folder:
        stages: dict[str, Callable[[], list[Finding]]] = {
            "spots": lambda: _spots(run, folder, asked, hashed),
            "known": lambda: _known(run),
        }
        findings = [finding for name, stage in stages.items() for finding in _kept(folder, name, stage, seed)]
        write_findings(folder.vault / FINDINGS, "validate", findings, seed=seed)
        private_text(folder.vault / REPORT, report(findings))
        folder.finish()
    return findings, seed


def recall_of_marks(marks: Path, out: Path, notes: Path | None = None) -> list[Finding]:
    """Estimate recall from an annotated sample, with its interval, and store it in the folder of the run.

    Args:
        notes: the notes of the run, to verify that they are unchanged; None to skip the check.

    Raises:
        InputError: not the folder of a run, marks of another run, or changed notes.
    """
    design = read_design(out)
    if notes is not None and fingerprint(notes) != design.notes:
        hint = "run validate again on the changed notes"
        raise InputError("not the notes of this run, or changed since", where=notes.name, hint=hint)
    findings = marked_findings(design, read_marks(marks, design))
    write_findings(out / RECALL, "validate", findings, seed=None)
    earlier = read_findings(out / FINDINGS) if (out / FINDINGS).exists() else []
    private_text(out / REPORT, report([*findings, *earlier]))
    return findings


def _kept(folder: RunFolder, name: str, stage: Callable[[], list[Finding]], seed: int) -> list[Finding]:
    """Return the findings of a stage, stored by an earlier run or computed now."""
    path = private_folder(folder.vault / "stages") / f"{name}.json"
    if not path.exists():
        write_findings(path, "validate", stage(), seed=seed)
    return read_findings(path)


def _spots(run: Validation, folder: RunFolder, asked: str, notes: str) -> list[Finding]:
    settings = run.settings
    usual = usual_forms(run.notes("read"))
    draw = Draw(settings.spots, settings.passage, usual, default_rng([run.seed, 3]))
    survival = Survival(run.patients, default_rng([run.seed, 4])) if run.patients else None
    for note, found in track(run.engine(feed=True), "notes searched", run.say):
        draw.add(note, found, suspected(note))
        if survival:
            survival.add(note, found)
    if not draw.sizes:
        raise InputError("contains no text", where=run.corpus.name)
    name = sha256(f"{asked} spots".encode()).hexdigest()[:12]
    write_sheet(folder.vault, name, notes, draw.sizes, draw.drawn())
    return survival.findings("with the feed") if survival else []


def _known(run: Validation) -> list[Finding]:
    if not run.patients:
        return []
    survival = Survival(run.patients, default_rng([run.seed, 4]))
    for note, found in track(run.engine(feed=False), "notes searched without the feed", run.say):
        survival.add(note, found)
    return survival.findings("without the feed")
