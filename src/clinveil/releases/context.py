"""The state of one run of the pipeline, and the timer of its stages."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from clinveil.core import Key, Say, Showing, rough, word_set
from clinveil.corpus import Corpus, HeldOutPatients
from clinveil.phi import NameIndex, NoteDeidentifier, ResidueTally
from clinveil.releases.earlier.ledger import Earlier, Entry
from clinveil.releases.earlier.note_hashes import NoteHashes
from clinveil.releases.earlier.reuse import ReusedRun
from clinveil.releases.outcome import RunPaths
from clinveil.releases.prepared_input import PreparedInput
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.shared_work import SharedWork
from clinveil.scale import Map, each, threads
from clinveil.vectors import over_words


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of a run: whether its result is "bitwise", "statistical" or "keyed", and its wall
    time in seconds.
    """

    name: str
    determinism: str
    seconds: float


@dataclass
class StageTimer:
    """Time and announce the stages of a run.

    Attributes:
        rows: the stages so far. plan: names of the planned stages, in order.
    """

    say: Say = lambda _: None
    rows: list[StageTime] = field(default_factory=list)
    plan: Sequence[str] = ()

    @contextmanager
    def stage(
        self, name: str, description: str, determinism: str = "bitwise"
    ) -> Iterator[dict[str, str]]:
        """Time a stage; it can overwrite the determinism in the yielded dictionary."""
        self.say(f"{name}: {description}")
        result = {"determinism": determinism}
        began = time.perf_counter()
        with ExitStack() as shown:
            if isinstance(self.say, Showing) and name in self.plan:
                number = self.plan.index(name) + 1
                shown.enter_context(self.say.stage(name, number, len(self.plan)))
            yield result
        seconds = time.perf_counter() - began
        self.say(f"{name}: ended at {time.strftime('%H:%M:%S')} after {rough(seconds)}")
        self.rows.append(StageTime(name, result["determinism"], round(seconds, 2)))


def hashing(settings: ReleaseSettings, executor: Map) -> Callable[..., Iterable[str]]:
    """Return the map that reads files to hash them: threads here, or tasks on a cluster."""
    return threads(settings.workers) if settings.executor.on == "local" else partial(each, executor)


@dataclass(frozen=True, kw_only=True)
class ReleaseContext(PreparedInput):
    """Context of all stages: the prepared input, and where and how the release is made.

    Attributes:
        held_out: the test patients. source_sha256: hash of the source.
        earlier: releases of the same notes under another key.
        reused: the run whose key and learned parts this one reuses. released: ledger entry of
            all that was released under this key before. nth: number of this release under it.
        pairs: files of word pairs with human scores. public: public texts about the same patients.
            Both are for the measures only.
        shared: results of other releases of the same comparison; None outside of comparisons.
        residues: counts of the residues of identifier treatment, once it has run.
        date_orders: number of notes with numeric dates by the order in which they were read,
            likewise.
    """

    folder: RunPaths
    key: Key
    settings: ReleaseSettings
    held_out: HeldOutPatients
    timer: StageTimer = field(default_factory=StageTimer, repr=False)
    source_sha256: str = ""
    earlier: Sequence[Earlier] = ()
    reused: ReusedRun | None = None
    released: Entry | None = None
    nth: int = 1
    pairs: tuple[Path, ...] = ()
    public: Corpus | None = field(default=None, repr=False)
    shared: SharedWork | None = None
    residues: ResidueTally = field(default_factory=ResidueTally)
    date_orders: Counter[str] = field(default_factory=Counter)

    @property
    def say(self) -> Say:
        """Receiver of progress messages."""
        return self.timer.say

    @property
    def seeds(self) -> dict[str, int]:
        """Seeds of training and measuring, derived from the key."""
        return {name: self.key.digest(f"{name} seed") % 2**31 for name in ("training", "measuring")}

    @property
    def notes_executor(self) -> Map:
        """Map for quick work on all notes: `parts_executor`, or processes here for many words of a
        single file.
        """
        return (
            self.parts_executor
            if self.facts
            else over_words(self.totals.tokens, self.settings.workers)
        )

    @property
    def known_names(self) -> frozenset[str]:
        """Words of known patients' names, in lookup form."""
        return word_set(" ".join(patient.name) for patient in self.known.values())

    def drawn_from(self, treated: Corpus) -> NoteHashes:
        """Return the hashes of the notes, with those of the treated notes that words are drawn
        from.

        Raises UsageError for a note that was released under this key and is treated differently
        now: draws are keyed by note and position, so both releases would share their randomness.
        """
        notes = self.totals.hashes.with_drawn(treated.batches())
        if self.released is not None:
            self.released.refuse(notes, again=self.settings.again)
        return notes

    def deidentifier(self, index: NameIndex | None = None) -> NoteDeidentifier | None:
        """Return the deidentifier, with an index of names from other notes; None with
        `phi=false`.
        """
        if not self.settings.phi:
            return None
        engine = NoteDeidentifier.of(self.settings.identifiers, self.key, patients=self.known)
        return engine if index is None else engine.with_finder(engine.finder.with_context(index))
