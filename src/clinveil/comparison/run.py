"""Make and measure each release of a comparison, then write the table and the page."""

from __future__ import annotations

import json
import secrets
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from clinveil.comparison.measured import AudienceVerdict, Comparison, MeasuredRelease
from clinveil.comparison.outputs import FINDINGS, PAGE, TABLE, write_outputs
from clinveil.comparison.phrases import Place, phrase, place_of, released_notes
from clinveil.comparison.settings import Candidate, CompareSettings, candidates, demo_candidates
from clinveil.core import (
    FolderKind,
    InputError,
    Location,
    MissingExtra,
    NotesSettings,
    Say,
    UsageError,
    fingerprint,
    owner_only,
    private_folder,
    private_text,
    read_json,
    refuse_nested,
    remove,
    rough,
    run_folder,
    run_hash,
    words,
)
from clinveil.corpus import Corpus, open_corpus, open_text, rows
from clinveil.phi import patients_of
from clinveil.releases import PRODUCERS, Outcome, SharedWork, dry_run, release
from clinveil.report import AUDIENCES
from clinveil.utility import read_pairs
from clinveil.vectors import VectorSettings

MARK = "SECRET.txt"
DEMO_MARK = "ABOUT.txt"
RUNS = "runs"
DEMO_NOTES = "notes"
SECRET = """SECRET: all of this comparison. It must not leave.

runs/ holds a run for each release that was compared, made with a public seed, so that anyone can
undo it. Table, page and findings describe how well attacks on these notes work.
"""
INVENTED = """INVENTED: the demo of clinveil. All people in these notes are invented.

notes/ holds the notes, and runs/ a run for each kind of release, each under a key of its own. With
real notes, only the folder release/ of one run may leave.
"""
_OUTPUT = {RUNS, TABLE, FINDINGS, PAGE}
_KIND = FolderKind(
    "comparison", notes={MARK: SECRET}, known=lambda ours, rest: ours and rest <= _OUTPUT
)
_DEMO = FolderKind(
    "demo",
    notes={DEMO_MARK: INVENTED},
    known=lambda ours, rest: rest <= {DEMO_NOTES} or (ours and rest <= _OUTPUT | {DEMO_NOTES}),
)
FEWEST = 2  # patients with a public text
SEED_GATE = "no test seed"  # always fails in a comparison
# Processor seconds of a comparison, November 2026: in any case, per million words for detection,
# and of each release of a kind.
FIXED = 30.0
PER_MILLION = 200.0
OF_KIND = {"obfuscated": 130.0, "deidentified": 40.0, "synthetic": 150.0}  # per million words
CHARACTERS = 6.0  # of a word


def compare_releases(
    notes: Location, out: Path, settings: CompareSettings, say: Say = lambda line: None
) -> Comparison:
    """Make a release of each kind, and of each named setting, from the same notes, and measure all
    of them.

    The same call again skips finished releases. All of `out` is secret: releases are made with a
    public seed.

    Args:
        notes: a file or a folder of notes. out: the folder of the comparison.

    Raises:
        UsageError: no label, settings that do not fit, or `out` is something else. InputError:
            notes that do not fit, for example of fewer than 50 patients.
    """
    settings.refuse()
    refuse_nested(OUT=out, NOTES=notes)
    return _compared(notes, out, settings, candidates(settings), _KIND, SharedWork(), say)


def compare_invented(
    out: Path, settings: CompareSettings, say: Say = lambda line: None
) -> Comparison:
    """Compare the kinds on the invented notes in `out/notes`, with small settings; each release has
    a new key.

    Raises:
        UsageError: `out` is something else.
    """
    notes = out / DEMO_NOTES / "notes.parquet"
    plan = demo_candidates(settings)
    return _compared(notes, out, settings, plan, _DEMO, SharedWork(secrets.token_bytes(16)), say)


def _compared(
    notes: Location,
    out: Path,
    settings: CompareSettings,
    plan: Sequence[Candidate],
    kind: FolderKind,
    shared: SharedWork,
    say: Say,
) -> Comparison:
    """Measure the planned releases and write the comparison into a folder of some kind."""
    source = _source(notes, settings)
    with owner_only(), run_folder(out, kind):
        if settings.force:
            remove(out / RUNS)
        counted = _counted(source)
        inputs = (fingerprint(notes), *settings.pairs, settings.known, settings.public)
        measurements = _Measurements(
            notes=notes,
            out=out,
            pairs=settings.pairs,
            public=public_texts(settings.known, counted.patients),
            inputs=inputs,
            place=place_of(source),
            shared=shared,
        )
        say(_estimate(counted, plan))
        try:
            releases = measurements.measure_all(plan, say)
        except (InputError, UsageError):
            if not any((out / RUNS).glob("*.json")):  # nothing to resume
                remove(out / RUNS)
            raise
        assert settings.label is not None
        comparison = Comparison(
            label=settings.label,
            models=settings.model,
            n_notes=counted.notes,
            n_patients=len(counted.patients),
            releases=tuple(releases),
            folder=out,
            seed=plan[0].settings.seed if plan else settings.seed,
            with_patients=settings.patients is not None,
            with_known=settings.known is not None,
            with_pairs=bool(settings.pairs),
        )
        write_outputs(comparison)
    return comparison


def _source(notes: Location, settings: CompareSettings) -> Corpus:
    """Return the notes. Raises InputError if they or another input cannot be read."""
    assert settings.label is not None
    source = open_corpus(notes, settings.notes, label=(settings.label,))
    if settings.public is not None:
        open_text(settings.public)
    for pairs in settings.pairs:
        read_pairs(pairs)
    return source


@dataclass
class _Counted:
    """Number of notes, of their words (about), and the patients."""

    notes: int = 0
    characters: int = 0
    patients: set[str] = field(default_factory=set, repr=False)

    @property
    def words(self) -> float:
        return self.characters / CHARACTERS


def _counted(source: Corpus) -> _Counted:
    """Read the notes once to count them."""
    counted = _Counted()
    for batch in source.batches():
        counted.notes += batch.num_rows
        counted.patients |= patients_of(batch)
    counted.characters = sum(len(note.text) for note in rows(source))
    return counted


def _estimate(counted: _Counted, plan: Sequence[Candidate]) -> str:
    """Return what the comparison is going to do, and about how long it takes."""
    millions = counted.words / 1e6
    kinds = [candidate.settings.kind for candidate in plan]
    seconds = FIXED + millions * (PER_MILLION + sum(OF_KIND[kind] for kind in kinds))
    names = ", ".join(candidate.name for candidate in plan)
    return (
        f"{len(plan)} releases of {counted.notes:,} notes ({names}): in all roughly"
        f" {rough(seconds)} on two idle cores"
    )


def public_texts(known: Path | None, patients: set[str]) -> Corpus | None:
    """Return the public texts, or None without any.

    Args:
        patients: patient ids of the notes.

    Raises:
        InputError: fewer than two patients have a public text, or the texts cannot be read.
    """
    if known is None:
        return None
    texts = open_corpus(known, NotesSettings())
    if len({note.patient_id for note in rows(texts)} & patients) < FEWEST:
        message = f"fewer than {FEWEST} patients of the notes have a text in it"
        raise InputError(message, where=known.name, hint="use the patient ids of the notes")
    return texts


@dataclass(frozen=True)
class _Measurements:
    """Make and measure the releases of one comparison.

    Attributes:
        pairs: files of word pairs. public: public texts about the patients.
        inputs: hash of the notes, and files that the measures read.
        place: words that are shown of each release. shared: what the releases compute once.
    """

    notes: Location
    out: Path
    pairs: tuple[Path, ...]
    public: Corpus | None
    inputs: tuple[Path | str | None, ...]
    place: Place | None
    shared: SharedWork

    def measure_all(self, plan: Sequence[Candidate], say: Say) -> list[MeasuredRelease]:
        """Measure each release that has not been measured; releases that train word vectors alike
        share them.
        """
        private_folder(self.out / RUNS)
        # All releases are checked before the first one is made.
        known = [self.finished(candidate) or self._not_possible(candidate) for candidate in plan]
        results: list[MeasuredRelease] = []
        for candidate, earlier in zip(plan, known, strict=True):
            if earlier is not None:
                reason = "not possible" if earlier.why else "measured before"
                say(f"{candidate.name}: {reason}")
                results.append(earlier)
                continue
            say(f"measure {candidate.name}")
            measured = self.measure(candidate, self._vectors(plan, candidate), say)
            say(f"{measured.name}: measured in {measured.seconds:.0f} s")
            results.append(measured)
        return results

    def _not_possible(self, candidate: Candidate) -> MeasuredRelease | None:
        """Return the reason if an extra is missing, or the notes do not suffice for synthetic ones.

        Raises InputError or UsageError for what does not fit.
        """
        settings = candidate.settings
        try:
            deque(dry_run(self.notes, settings), maxlen=0)
        except (InputError, MissingExtra) as error:
            if isinstance(error, InputError) and settings.kind != "synthetic":
                raise
            return MeasuredRelease(candidate.name, settings.kind, why=str(error))
        return None

    def _vectors(self, plan: Sequence[Candidate], candidate: Candidate) -> Path | None:
        """Word vectors that another release of the comparison trained in the same way."""
        training = _training(candidate)
        if not training:
            return None
        for other in plan:
            if other == candidate or _training(other) != training or not self.finished(other):
                continue
            folder = self.out / RUNS / other.name / "vault" / "vectors"
            if folder.exists():
                return folder
        return None

    def finished(self, candidate: Candidate) -> MeasuredRelease | None:
        """The result of an earlier run with the same inputs."""
        data = read_json(self.out / RUNS / f"{candidate.name}.json")
        try:
            return (
                MeasuredRelease.from_dict(data["measured"])
                if data["question"] == self._question(candidate)
                else None
            )
        except (TypeError, ValueError, KeyError):
            return None

    def _question(self, candidate: Candidate) -> str:
        settings = candidate.settings
        return run_hash(settings, *self.inputs)

    def measure(self, candidate: Candidate, vectors: Path | None, say: Say) -> MeasuredRelease:
        """Make a release, measure it, and record the result."""
        began = time.perf_counter()
        runs = self.out / RUNS
        try:
            outcome = release(
                self.notes,
                runs / candidate.name,
                candidate.settings,
                vectors=vectors,
                pairs=self.pairs,
                public=self.public,
                shared=self.shared,
                say=say,
            )
        except InputError as error:
            if candidate.settings.kind != "synthetic":
                raise
            # For example a label of few patients.
            return MeasuredRelease(candidate.name, "synthetic", why=str(error))
        measured = _measured_release(candidate, outcome, self.place, time.perf_counter() - began)
        record = {"question": self._question(candidate), "measured": measured.as_dict()}
        private_text(runs / f"{candidate.name}.json", json.dumps(record, allow_nan=False))
        remove(runs / f".{candidate.name}.replaced")
        return measured


def _training(candidate: Candidate) -> str:
    """How a release trains word vectors: releases that train alike can share them. Empty where they
    cannot.
    """
    settings = candidate.settings
    vectors = candidate.settings.vectors
    if VectorSettings not in PRODUCERS.get(settings.kind).settings or vectors.more_text:
        return ""
    trained = [vectors.record(), settings.identifiers.record(), settings.phi]
    return json.dumps(trained, sort_keys=True)


def _measured_release(
    candidate: Candidate, outcome: Outcome, place: Place | None, seconds: float
) -> MeasuredRelease:
    notes = released_notes(outcome)
    distinct = (
        len({word for note in rows(notes) for word in words(note.text)}) if notes is not None else 0
    )
    return MeasuredRelease(
        name=candidate.name,
        kind=candidate.settings.kind,
        findings=outcome.findings,
        seconds=seconds,
        distinct=distinct,
        verdicts=_verdicts(outcome),
        phrase=phrase(outcome, place),
    )


def _verdicts(outcome: Outcome) -> dict[str, AudienceVerdict]:
    """Return the verdict for each audience, without the gate on a public seed."""
    found = {}
    for verdict in outcome.verdicts:
        gates = tuple(gate for gate in verdict.gates if gate.name != SEED_GATE)
        judged = replace(verdict, gates=gates)
        found[verdict.audience] = AudienceVerdict(judged.may_leave, judged.sentence)
    return {name: found[name] for name in AUDIENCES if name in found}
