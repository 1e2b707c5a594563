"""Read and validate the input of a release before anything is written: one pass over all notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from clinveil.attacks import kept_columns
from clinveil.core import InputError, Location, Say, UsageError, track
from clinveil.corpus import (
    PATIENT_ID,
    Corpus,
    NotesCorpus,
    OpenedCorpus,
    PartedCorpus,
    PartFacts,
    Patient,
    Screened,
    joined,
    open_corpus,
    open_text,
    part_facts,
    read_patients,
    refuse_unreadable,
)
from clinveil.corpus import rows as note_rows
from clinveil.phi import check_date_columns
from clinveil.releases.prepared_input import Preflight, PreparedInput
from clinveil.releases.producer import Producer
from clinveil.releases.settings import ReleaseSettings
from clinveil.report import Limits
from clinveil.scale import Broken, Map, each
from clinveil.vectors import Vectors, load_vectors, need_gensim, refuse_foreign


def first_label(corpus: Corpus) -> str | None:
    """Return the first label column of notes, if they have one."""
    return next(iter(corpus.columns.labels), None)


def preflight(corpus: Corpus, say: Say = lambda _: None) -> Preflight:
    """Read all notes once to count them and to detect a broken file early. Raises InputError."""
    found = Preflight()
    for batch in track(corpus.batches(), "notes read", say, size=lambda batch: batch.num_rows):
        found.take(batch, first_label(corpus))
    found.skipped = Counter(getattr(corpus, "skipped", {}))
    if isinstance(seen := getattr(corpus, "seen", None), Screened):
        seen.refuse()
    return found


def preflight_parts(
    corpus: PartedCorpus, executor: Map, say: Say, broken: Broken
) -> tuple[PartedCorpus, Preflight, tuple[PartFacts, ...]]:
    """Run `preflight` on the readable parts with rows; return these parts, the totals, and facts
    per part.

    Args:
        broken: collects unreadable parts.

    Raises:
        Incomplete: only damaged parts contain notes. InputError: an id occurs in two parts.
    """
    total = Preflight()
    facts = list[PartFacts]()
    scanned = each(executor, _scan, corpus.parts, broken)
    for found, of_part in track(scanned, "notes read", say, size=lambda part: part[1].rows):
        total += found
        facts.append(of_part)
    sound = replace(corpus, parts=broken.left(corpus.parts))
    sound.refuse_repeats([of_part.ids for of_part in facts])
    refuse_unreadable(facts)
    if not total.rows:
        broken.refuse()
    held = [i for i, one in enumerate(facts) if one.rows]  # Spark writes empty parts
    return (
        replace(sound, parts=tuple(sound.parts[i] for i in held)),
        total,
        tuple(facts[i] for i in held),
    )


def _scan(part: NotesCorpus) -> tuple[Preflight, PartFacts]:
    found = Preflight()
    facts = part_facts(part, partial(found.take, label=first_label(part)))
    found.skipped = Counter(part.skipped)
    found.owners = [np.unique(joined(found.owners))]
    return found, facts


def prepared(
    notes: Location,
    settings: ReleaseSettings,
    producer: Producer,
    vectors: Path | None,
    executor: Map,
    say: Say = lambda _: None,
    *,
    reused: bool = False,
) -> PreparedInput:
    """Read and validate the input of a run.

    Args:
        executor: map for part files. reused: the run reuses what an earlier one learned.
    """
    settings.vectors.refuse_beside(vectors)
    known = read_patients(settings.identifiers.patients) if settings.identifiers.patients else {}
    if vectors is None and not reused:
        need_gensim(settings.vectors.algorithm)
    corpus = _opened(notes, settings, keeps_markup=producer.keeps_markup)
    _check_dates(corpus, settings, executor)
    broken = Broken()
    facts = tuple[PartFacts, ...]()
    names = part_names(corpus)
    if isinstance(corpus, PartedCorpus):
        corpus, found, facts = preflight_parts(corpus, executor, say, broken)
    else:
        found = preflight(corpus, say)
    if not found.rows:
        raise InputError("contains no notes", hint="pass a file with at least one row")
    if not broken.errors:
        producer.refuse_notes(found, settings, corpus, reused=reused)
    _refuse_early(corpus, settings, known)
    if settings.vectors.more_text and producer.learns and not reused:
        open_text(settings.vectors.more_text)
    return PreparedInput(
        corpus=corpus,
        totals=found,
        known=known,
        imported=_imported(vectors, corpus),
        facts=facts,
        names=names,
        broken=broken,
        executor=executor,
    )


def part_names(corpus: Corpus) -> tuple[str, ...]:
    """Return the names of all part files; empty for a single file."""
    return tuple(part.name for part in corpus.parts) if isinstance(corpus, PartedCorpus) else ()


def _refuse_early(corpus: Corpus, settings: ReleaseSettings, known: Mapping[str, Patient]) -> None:
    """Raise InputError before the work for what a gate would refuse after it.

    Only gates judge part files; a test seed never leaves.
    """
    one_file = not isinstance(corpus, PartedCorpus)
    if one_file and settings.seed is None and settings.kind != "synthetic":
        _refuse_unique(corpus, settings)
        _refuse_strangers(corpus, known)


def _opened(notes: Location, settings: ReleaseSettings, *, keeps_markup: bool) -> OpenedCorpus:
    """Open the notes as the run reads them."""
    keep = settings.identifiers.opened(settings.keep)
    opened = open_corpus(notes, settings.notes, label=settings.label, keep=keep)
    screened = opened.screened(settings.identifiers.language)
    return screened if keeps_markup else screened.without_markup()


def _imported(vectors: Path | None, corpus: Corpus) -> Vectors | None:
    """Return given vectors. Raises InputError if they are not of words of the notes."""
    if vectors is None:
        return None
    imported = load_vectors(vectors)
    refuse_foreign(imported, (note.text for note in note_rows(corpus)))
    return imported


def _check_dates(opened: OpenedCorpus, settings: ReleaseSettings, executor: Map) -> None:
    """Raise UsageError for columns of dates that would stay next to shifted notes."""
    shift = settings.identifiers.shift
    if not settings.phi:
        if shift:
            hint = "leave identifiers.shift or phi=false out"
            raise UsageError("identifiers.shift: phi=false leaves dates unchanged", hint=hint)
        return
    check = partial(check_date_columns, policy=settings.identifiers.policy(), shift=shift)
    if isinstance(opened, PartedCorpus):  # where parts are read; a damaged one is named later
        list(each(executor, check, opened.parts[:1], Broken()))
    else:
        check(opened)


def _refuse_unique(corpus: Corpus, settings: ReleaseSettings) -> None:
    """Raise InputError before the work if too many notes have unique values in kept columns."""
    most = Limits.read(settings.limits).rules(settings.audience)["kept_columns"].most
    unmoved = settings.identifiers.unmoved(corpus.columns.keep)
    for finding in kept_columns(corpus, unmoved) if most is not None else ():
        if most is not None and finding.value is not None and finding.value > most:
            what = f"{finding.value:.1%} of the notes have unique kept values (allowed: {most:.1%})"
            hint = "nothing was written: keep fewer or coarser columns"
            raise InputError(what, where=", ".join(corpus.columns.keep), hint=hint)


def _refuse_strangers(corpus: Corpus, known: Mapping[str, Patient]) -> None:
    """Raise InputError before the work if no patient of the list has a note."""
    if not known or corpus.columns.patient_id is None:
        return
    if not any(
        known.keys() & set(batch.column(PATIENT_ID).to_pylist()) for batch in corpus.batches()
    ):
        hint = (
            "use the same patient ids in both files, or choose the column of the notes with"
            " --patient"
        )
        raise InputError(
            f"none of its {len(known)} patients has a note here", where="--patients", hint=hint
        )
