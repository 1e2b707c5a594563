"""Corrections of a person that enter a treatment: the setting `identifiers.reviewed`.

A folder contains the decisions of `clinveil review` on the output of `clinveil deidentify` (its
vault), or on the sample of `clinveil validate` (its folder).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from clinveil.core import UsageError, default_vault
from clinveil.corpus import Corpus
from clinveil.phi.review.decisions import (
    FOLDER,
    DecisionFile,
    Decisions,
    ReviewedNote,
    read_file,
    refuse_overlaps,
)
from clinveil.phi.settings import PhiSettings
from clinveil.phi.validation.marks import (
    DESIGN,
    Design,
    Marks,
    decisions_on,
    detection_of,
    marked_notes,
    read_design,
    read_marks,
)

SETTING = "identifiers.reviewed"


def read_corrections(folders: Sequence[Path], kept: frozenset[str]) -> Decisions | None:
    """Return the corrections in folders of reviews; None without a folder.

    Args:
        kept: labels that the policy keeps unchanged.

    Raises UsageError for a folder without decisions, InputError for a damaged file.
    """
    if not folders:
        return None
    notes: dict[str, list[ReviewedNote]] = {}
    for folder in folders:
        if is_sample(folder):
            design = read_design(folder)
            files = [decisions_on(path, design) for path in decision_files(folder)]
            corrected: dict[str, list[ReviewedNote]] = {
                note_id: [*marked] for note_id, marked in marked_notes(design, files, kept).items()
            }
        else:
            corrected = Decisions.of_files(_read_all(folder))
        for note_id, reviewed in corrected.items():
            notes.setdefault(note_id, []).extend(reviewed)
    return Decisions(notes)


def _read_all(folder: Path) -> Iterable[DecisionFile]:
    for path in decision_files(folder):
        file = read_file(path)
        refuse_overlaps(file, path)
        yield file


def is_sample(folder: Path) -> bool:
    """Return whether a folder is that of a `clinveil validate` run."""
    return (folder / DESIGN).is_file()


def decision_files(folder: Path) -> list[Path]:
    """Return the files of decisions in a folder, one per reviewer. Raises UsageError if there is
    none.
    """
    files = sorted((folder / FOLDER).glob("*.jsonl"))
    if files:
        return files
    vault = default_vault(folder)
    if (vault / FOLDER).is_dir():
        raise UsageError(
            f"{SETTING}: decisions are in the vault of the run",
            where=folder.name,
            hint=f"pass {vault.name}",
        )
    if folder.parent.name == FOLDER:
        hint = f"pass the folder of the run, {folder.parent.parent.name}"
    else:
        hint = "pass the folder that clinveil validate wrote, or the vault of clinveil deidentify"
    raise UsageError(f"{SETTING}: no decisions of clinveil review", where=folder.name, hint=hint)


def sample_of(folders: Sequence[Path]) -> tuple[Design, Marks] | None:
    """Return the design and the marks of the sample in folders of reviews; None if there is none.

    The marks of several reviewers are joined. Raises UsageError for two samples.
    """
    samples = [folder for folder in folders if is_sample(folder)]
    if not samples:
        return None
    if len(samples) > 1:
        raise UsageError(f"{SETTING}: two samples", hint="pass one folder of clinveil validate")
    design = read_design(samples[0])
    marks = Marks()
    for path in decision_files(samples[0]):
        marks = marks.joined(read_marks(path, design))
    return design, marks


def refuse_other_notes(settings: PhiSettings, corpus: Corpus, fingerprint: str) -> None:
    """Check that the corrections of `identifiers.reviewed` are of these notes and this detection.

    Args:
        fingerprint: hash of the notes.

    Raises UsageError if they are not, or if the marks of a sample are incomplete. Warns with
    InputWarning if some reviewed notes are not here.
    """
    corrections = read_corrections(settings.reviewed, settings.policy().kept)
    if corrections is None:
        return
    if sample := sample_of(settings.reviewed):
        design = sample[0]
        if design.fingerprint != fingerprint:
            raise UsageError(
                f"{SETTING}: the sample is of other notes, or the notes changed since",
                hint="pass the notes of the sample, or run clinveil validate on these notes",
            )
        now = detection_of(settings)
        if other := [name for name in now if now[name] != design.detection.get(name)]:
            raise UsageError(
                f"{SETTING}: the sample was drawn with another detection ({', '.join(other)})",
                hint="run clinveil validate with the settings of the release",
            )
    corrections.check_corpus(corpus)
