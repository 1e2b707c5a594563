"""Canaries: invented secrets planted in notes, and how a model or a text ranks them and gives them back.

A canary is a fixed beginning and a secret drawn at random from a known space. After training, the model's probability
of the planted secret is ranked among fresh draws of the same space: exposure is log2 |R| - log2 rank, in bits. Equal
probabilities are ranked at random: a text that knows no secret gives nearly all of them one and the same. Secrets that
were drawn but never planted are the control: whatever they score is chance.

Source: Carlini et al. 2019, The Secret Sharer, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from clinveil.attacks.suffix_automaton import SuffixAutomaton, Vocabulary, separated
from clinveil.core.errors import InputError
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Mask
from clinveil.corpus.corpus import NOTE_ID, TEXT, Corpus, MemoryCorpus, rows

REPEATS = (1, 2, 4, 8, 16)
REFERENCES = 1_000
UNPLANTED = 200  # secrets of each family: scoring them is cheap, and 3 would be no control
Score = Callable[[Sequence[str]], Doubles]  # texts -> log-probability of each (natural log)


@dataclass(frozen=True)
class Family:
    """A space of secrets: a beginning, and for each place the words that may stand there.

    Raises InputError for a place without choice.
    """

    name: str
    beginning: str
    places: tuple[tuple[str, ...], ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.places or min(len(set(place)) for place in self.places) < 2:
            raise InputError(f"canaries of the family {self.name} have nothing to choose from")

    @property
    def bits(self) -> float:
        """log2 of how many secrets there are."""
        return float(sum(np.log2(len(place)) for place in self.places))

    def draw(self, n: int, rng: Generator) -> list[str]:
        """Secrets, uniform and independent."""
        columns = [rng.integers(len(place), size=n) for place in self.places]
        return [" ".join(place[row[i]] for place, row in zip(self.places, columns, strict=True)) for i in range(n)]

    def text(self, secret: str) -> str:
        """The sentence that is planted."""
        return f"{self.beginning} {secret}"


def phrase_family(common_words: Sequence[str], length: int = 5) -> Family:
    """Phrases of `length` common words in no order: any vocabulary has them."""
    return Family("phrase", "reference phrase", (tuple(common_words),) * length)


def number_family(length: int = 7) -> Family:
    """Record numbers, spelled digit by digit so that no vocabulary calls them unknown."""
    return Family("number", "record number", (tuple("0123456789"),) * length)


def name_family(given: Sequence[str], family: Sequence[str]) -> Family:
    """Full names; a vocabulary with a rare-word floor should not know them at all."""
    return Family("name", "contact person", (tuple(given), tuple(family)))


@dataclass(frozen=True)
class Canary:
    """One secret, and how often it is planted (0: the control)."""

    family: Family
    secret: str = field(repr=False)
    repeats: int

    @property
    def text(self) -> str:
        """The sentence that is planted."""
        return self.family.text(self.secret)


def invent(
    families: Sequence[Family],
    rng: Generator,
    *,
    repeats: Sequence[int] = REPEATS,
    each: int = 5,
    unplanted: int = UNPLANTED,
) -> list[Canary]:
    """`each` canaries of every family for each number of repeats, and `unplanted` that are never planted."""
    counts = [(0, unplanted), *((n, each) for n in repeats)]
    wanted = [(family, n) for family in families for n, many in counts for _ in range(many)]
    return [Canary(family, family.draw(1, rng)[0], n) for family, n in wanted]


def planted(corpus: Corpus, canaries: Sequence[Canary], rng: Generator) -> MemoryCorpus:
    """The notes with each canary appended to notes of one random patient, as often as it says; a note may hold several.

    Raises InputError where there are no notes. Streams the corpus once for its ids, and once at each pass.
    """
    notes = [(note.note_id, note.patient_id) for note in rows(corpus)]
    if not notes:
        raise InputError("there is no note to plant canaries in")
    by_patient: dict[str, list[str]] = {}
    for note, patient in notes:
        by_patient.setdefault(patient, []).append(note)
    patients = sorted(by_patient)
    additions: dict[str, list[str]] = {}
    for canary in canaries:
        own = by_patient[patients[int(rng.integers(len(patients)))]]
        for i in range(canary.repeats):
            additions.setdefault(own[i % len(own)], []).append(canary.text)
    return MemoryCorpus(lambda: _with_additions(corpus, additions), corpus.columns, corpus.suffix)


def _with_additions(corpus: Corpus, additions: Mapping[str, list[str]]) -> Iterator[pa.RecordBatch]:
    for batch in corpus.batches():
        notes = zip(batch[NOTE_ID].to_pylist(), batch[TEXT].to_pylist(), strict=True)
        texts = [None if text is None else "\n".join([text, *additions.get(note, ())]) for note, text in notes]
        yield batch.set_column(batch.schema.get_field_index(TEXT), TEXT, pa.array(texts, type=batch[TEXT].type))


def expected_exposure(references: int = REFERENCES) -> float:
    """Mean exposure in bits of a secret never planted, exactly: its rank is uniform over 1 to references + 1.

    For 1,000 references 1.436; 1 / ln 2 = 1.443 in the limit.
    """
    return float(np.mean(np.log2(references + 1) - np.log2(np.arange(1, references + 2))))


def exposures(canaries: Sequence[Canary], score: Score, rng: Generator, *, references: int = REFERENCES) -> Doubles:
    """(n_canaries,) exposure in bits: log2 |R| - log2 rank, R `references` fresh draws and the canary.

    The rank is 1 + how many references score more + a uniform draw from 0 to how many score the same. Exposure is at
    most log2(references + 1), about 10 bits for 1,000; of secrets never planted the mean is `expected_exposure`.

    Raises InputError for scores that are no numbers.
    """
    found = np.empty(len(canaries))
    for family in {canary.family.name: canary.family for canary in canaries}.values():
        rows = [i for i, canary in enumerate(canaries) if canary.family.name == family.name]
        fresh = [family.text(secret) for secret in family.draw(references, rng)]
        # In one call: what is equally likely must come out equal to the last bit.
        scored = score([*fresh, *(canaries[i].text for i in rows)])
        if not np.isfinite(scored).all():
            raise InputError("the model gives a canary no probability")
        drawn, own = np.sort(scored[:references]), scored[references:]
        greater = references - np.searchsorted(drawn, own, side="right")
        equal = references - greater - np.searchsorted(drawn, own, side="left")
        found[rows] = np.log2(references + 1) - np.log2(1 + greater + rng.integers(0, equal, endpoint=True))
    return found


def extracted(canaries: Sequence[Canary], released: Corpus) -> Mask:
    """(n_canaries,) whether the whole secret stands somewhere in released notes, word for word."""
    vocabulary = Vocabulary()
    secrets = [vocabulary.add(_spelled(canary.secret)) for canary in canaries]
    automaton = SuffixAutomaton(separated(secrets))
    for _, _, text in rows(released):
        automaton.stream(vocabulary.ids(_spelled(text)))
    ends = np.cumsum([ids.size + 1 for ids in secrets]) - 2
    return np.asarray(automaton.runs()[ends] >= [ids.size for ids in secrets])


def _spelled(text: str) -> list[str]:
    """Words, or for digits each by itself: `words` knows no numbers."""
    spaced = "".join(f" {c} " if c.isdecimal() else c for c in text)
    return [form for part in spaced.split() for form in ([part] if part.isdecimal() else words(part))]
