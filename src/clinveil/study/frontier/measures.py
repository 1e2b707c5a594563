"""What is asked of every setting: what is read back, who is linked, and what is still of use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.attacks.attack import Context
from clinveil.attacks.channel.ladder import Ladder
from clinveil.attacks.reader import readers
from clinveil.attacks.text.linkage import Linkage
from clinveil.core.files import save_array
from clinveil.core.finding import Finding
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import rows
from clinveil.corpus.open import open_corpus
from clinveil.scale.tasks import Result, Store
from clinveil.study.engine import Task, found, labelled
from clinveil.study.frontier.grid import told
from clinveil.study.frontier.tasks import Prepare, Treat, keyed
from clinveil.study.inputs import File, Train
from clinveil.utility.classifiers import ClassifierSettings, Side, classifier, predict
from clinveil.utility.pairs import read_pairs
from clinveil.utility.scores import Scores, majority_of
from clinveil.utility.similarity import SimilarityTask, pair_similarities, similarity
from clinveil.vectors.count import count_words

STRONGEST = ("unigram", "bigram", "assembly")  # with the channel: no context, word pairs, and who undoes a shuffle
TEST, NEURAL_FOLDS, DRAWS = "test.npy", 2, 200
KEPT, AGAINST = "study.kept", "study.against"


def strongest_readers() -> tuple[str, ...]:
    """Those of the strongest attackers that there are."""
    return tuple(name for name in STRONGEST if name in readers)


@dataclass(frozen=True)
class Read(Task):
    """Who holds the channel and other patients' notes reads the release; names are planted for him to find."""

    treat: Treat
    readers: tuple[str, ...]
    tokens: int
    canaries: int
    seed: int

    stage = "read"
    says = "read: {treat.cell.name}"

    def seconds(self, millions: float) -> float:
        """Measured on a shared x86-64 machine."""
        return millions * 10 + self.tokens / 1_000

    def __call__(self, folder: Path, store: Store) -> Result:
        """The findings of all readers."""
        prepare, released = self.treat.prepare, self.treat.corpus(store)
        corpus = prepare.corpus(store)
        context = Context(
            channel=self.treat.channel(store),
            counts=count_words(corpus, folder / "scratch"),
            released=released,
            entered=corpus,
            alignment=lambda: self.treat.alignment(store),
            known=self.treat.patients(),
            workers=1,
        )
        ladder = Ladder(reader=self.readers, tokens=self.tokens, canaries=self.canaries)
        return found(ladder(context, np.random.default_rng([self.seed, 3])), **told(self.treat.cell))


@dataclass(frozen=True)
class Known:
    """What is publicly known of people: a file of texts, how it is read, and the column that pairs it with notes."""

    file: File
    match: str
    text: str | None
    reading: NotesSettings = field(compare=False)

    def corpus(self) -> Any:
        """The known texts."""
        how = self.reading.but(text=self.text) if self.text else self.reading
        return open_corpus(self.file.path, how, keep=(self.match,))


@dataclass(frozen=True)
class Link(Task):
    """Whose note is it? With the vectors and without; what is known is the note itself, ten words of it, or `known`."""

    treat: Treat
    most: int
    fragment: int
    known: Known | None
    seed: int

    stage = "link"
    says = "link: {treat.cell.name}"

    def seconds(self, millions: float) -> float:
        """Measured on a shared x86-64 machine."""
        return self.most / 15 + 2

    def __call__(self, folder: Path, store: Store) -> Result:
        """The findings of all attackers, each with what he knows."""
        treat, known = self.treat, self.known
        held: dict[str, Any] = {"channel": treat.channel(store), "vectors": [treat.train.load(store)], "workers": 1}
        rng = np.random.default_rng([self.seed, 4])
        if known is None:
            of = Context(released=treat.corpus(store), original=treat.prepare.corpus(store), **held)
            linkage = Linkage(most=self.most, fragment=self.fragment)
        else:
            released = keyed(treat, treat.prepare, known.match, store)
            of = Context(released=released, original=known.corpus(), **held)
            linkage = Linkage(most=self.most, fragment=0, match=known.match)
        public = "what is publicly known" if known else "the notes"
        return found(linkage(of, rng), **told(treat.cell), source_of_knowledge=public)


@dataclass(frozen=True)
class Guess(Task):
    """Train one model on each fold of one side's text, and guess the notes of the fold that it has not seen.

    Attributes:
        treat: whose text; None for the original. train: whose vectors a network starts from.
    """

    prepare: Prepare
    treat: Treat | None
    model: str
    train: Train | None
    seed: int

    stage = "classify"

    @property
    def title(self) -> str:
        """What it does."""
        return f"{self.model}, text: {self.treat.cell.name if self.treat else 'original'}"

    def seconds(self, millions: float) -> float:
        """By model, of as many folds."""
        return millions * classifier(self.model).cost * self.folds + 4

    @property
    def folds(self) -> int:
        """Networks are trained on the first folds only."""
        return NEURAL_FOLDS if classifier(self.model).neural else 5

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the guesses of all folds, end to end."""
        notes, folds = self.prepare.labels(store)
        of = {note.note_id: note.text for note in rows((self.treat or self.prepare).corpus(store))}
        texts = [of.get(note, "") for note in notes.note_ids]
        side = Side(texts, texts, self.train.load(store) if self.train else None)
        settings = ClassifierSettings()
        made = [
            predict(self.model, notes, parts, self.seed, side, settings=settings).test for parts in folds[: self.folds]
        ]
        save_array(folder / TEST, np.concatenate(made))
        return {}

    def load(self, store: Store) -> NDArray[Any]:
        """What a finished task guessed."""
        return np.asarray(np.load(store.folder(self) / TEST, allow_pickle=False))


@dataclass(frozen=True)
class Compare(Task):
    """One model on one setting against the original, and against other settings, on the same test notes."""

    original: Guess
    treated: Guess
    others: tuple[Guess, ...]
    seed: int

    stage = "compare"
    says = "compare {treated.title}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Both sides, the loss, the share that is kept, and the paired change against each of the others."""
        assert self.treated.treat is not None
        cell, theirs = self.treated.treat.cell, self.treated.load(store)
        found_here = [*self._against_original(theirs, store), *self._against_others(theirs, store)]
        return found(found_here, **told(cell), model=self.treated.model)

    def _scores(self, store: Store) -> Scores:
        notes, folds = self.treated.prepare.labels(store)
        rows = np.concatenate([parts.test for parts in folds[: self.treated.folds]])
        majority = majority_of(notes.targets, len(rows))
        return Scores(notes.targets[rows], [notes.patients[row] for row in rows], majority, notes.detail)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, 5])

    def _against_original(self, theirs: NDArray[Any], store: Store) -> Iterator[Finding]:
        scores, ours = self._scores(store), self.original.load(store)
        whole = scores.side("macro_f1", "original", [ours], [], self._rng())
        loss = scores.loss("macro_f1", [ours], [theirs], self._rng())
        yield from (whole, scores.side("macro_f1", "released", [theirs], [], self._rng()), loss)
        yield kept(whole, loss)

    def _against_others(self, theirs: NDArray[Any], store: Store) -> Iterator[Finding]:
        for other in self.others:
            assert other.treat is not None
            loss = self._scores(store).loss("macro_f1", [other.load(store)], [theirs], self._rng())
            assert loss.value is not None and loss.low is not None and loss.high is not None
            gain = replace(loss, measure=AGAINST, better="higher", value=-loss.value, low=-loss.high, high=-loss.low)
            yield labelled(gain, against=other.treat.cell.name)


def kept(whole: Finding, loss: Finding) -> Finding:
    """The share of the original's score that is kept; its interval is the paired one of the loss, over that score."""
    best = whole.value or 0.0
    if best <= 0 or loss.value is None or loss.low is None or loss.high is None:
        return Finding(KEPT, None, whole.n, "higher", detail={**whole.detail, "why": "the original scores nothing"})
    share, low, high = (1 - lost / best for lost in (loss.value, loss.high, loss.low))
    about: dict[str, Any] = {"unit": whole.unit, "method": "paired bootstrap of the loss over patients, 95 %"}
    floor = None if whole.chance is None else whole.chance / best
    about |= {"chance": floor, "chance_is": "always the most frequent class"}
    return Finding(KEPT, share, whole.n, "higher", low, high, detail=loss.detail, source=loss.source, **about)


@dataclass(frozen=True)
class Similar(Task):
    """Word pairs by vectors retrained on a release, on the pairs that the original's vectors cover.

    A pair with a word that came out nowhere counts as of similarity 0: words that are gone cost.
    """

    name: str
    of_vectors: str
    train: Train
    original: Train
    lists: tuple[File, ...]
    any_size: bool
    seed: int

    stage = "word pairs"
    says = "word pairs: {name}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """The findings of all lists."""
        vectors, before, findings = self.train.load(store), self.original.load(store), []
        for file in self.lists:
            pairs = read_pairs(file.path, any_size=self.any_size)
            how = SimilarityTask(missing="zero", only=~np.isnan(pair_similarities(before, pairs)), draws=DRAWS)
            findings += similarity(vectors, pairs, np.random.default_rng([self.seed, 6]), how)
        return found(findings, setting=self.name, of_vectors=self.of_vectors)


def strongest(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Of every setting and kind of words the reading of who reads most of them."""
    best: dict[tuple[Any, Any], Finding] = {}
    for one in findings:
        if not one.measure.startswith("attack.reading") or one.detail.get("unprotected") or one.value is None:
            continue
        at = one.detail.get("setting"), one.detail.get("stratum")
        if at not in best or (best[at].value or 0.0) < one.value:
            best[at] = one
    return (replace(one, measure="study.strongest") for one in best.values())
