"""Canaries: invented secrets planted in an audit copy of the training notes, and how far model and
text disclose them.

A canary is a fixed beginning and a secret drawn from a known space. After training, the probability
of the planted secret is ranked among fresh draws of the same space: exposure is log2 |R| - log2
rank, in bits. Equal probabilities are ranked at random, because a text without the secret gives
nearly all draws the same probability. Secrets that were drawn but never planted are the control.

Canaries belong in an audit run, never in a run with notes to share.

Source: Carlini et al. 2019, The Secret Sharer, section 4; paper C plants nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from scipy.special import gammaincc

from clinveil.attacks.attack import Attack, Context
from clinveil.attacks.models.membership import model_of_text, written
from clinveil.attacks.suffix_automaton import SuffixAutomaton, separated
from clinveil.attacks.suffix_automaton import Vocabulary as WordIds
from clinveil.attacks.threats import tagged
from clinveil.core import Doubles, Finding, InputError, Mask, Say, group, setting
from clinveil.core import words as words_of
from clinveil.corpus import NOTE_ID, TEXT, Corpus, MemoryCorpus, rows
from clinveil.lm import (
    EncodedNotes,
    LanguageModel,
    ModelSettings,
    PlainNotes,
    SamplingConfig,
    batch_size_for,
    encode,
    make_vocabulary,
    read_notes,
    train_model,
)
from clinveil.stats import HitCounts, MeasureSpec, t_interval

REPEATS = (1, 2, 4, 8, 16)
REFERENCES = 1_000
UNPLANTED = 200  # secrets of each family: scoring is cheap, and few would be no control
COMMON = 200
NAMES = 300
ALIKE = "no interval for identical exposures; at the ceiling it has no upper end"
BY_T = "t over canaries, 95 %"
# Simulated with unplanted canaries, 20,000 times; a percentile bootstrap covers 69 % with 3, 79 %
# with 5.
FEW = f"{BY_T} nominal; 88 to 91 % in simulation for fewer than 20, because exposures are skewed"
P_IS = (
    "the same number of unplanted canaries has this mean exposure or more (gamma, an upper bound)"
)
CONTROL_IS = "secrets never planted"
CHANCE_IS = "a secret never planted, with a uniform rank among the references"
SOURCE = "Carlini et al. 2019, The Secret Sharer, exposure by rank among fresh draws"
Score = Callable[[Sequence[str]], Doubles]  # texts -> log-probability of each (natural log)

EXTRACTION = MeasureSpec(
    measure="attack.canary_extraction",
    over="canaries",
    source=SOURCE,
    control_is=CONTROL_IS,
    control_kind="negative",
)


class Canaries(Attack):
    """Train on a copy with canaries; measure how far the model, and its synthetic notes alone,
    disclose them.

    `seed` is that of the training; a network is deterministic with one worker.
    """

    needs = frozenset({"training"})
    lm: ModelSettings = group(ModelSettings)
    seed: int = setting(0, "Seed of the training.", ge=0, le=2**63 - 1)
    each: int = setting(5, "Canaries per family and number of repeats.", ge=1)
    repeats: tuple[int, ...] = setting(
        REPEATS, "Number of times that a canary is planted; repeatable."
    )

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Plant, train, generate as many tokens as the training has, and measure on the model and
        on the text alone.

        `context.training` are `PlainNotes`.

        Returns:
            `attack.canary_exposure` and `attack.canary_extraction` by family and repeats; for an
            n-gram model, which generates no notes, only the exposure under the model.
        """
        notes = context.training
        threads = context.workers
        canaries = invent(families(notes, rng), rng, repeats=self.repeats, each=self.each)
        with_canaries = read_notes(planted(notes.as_corpus(), canaries, rng), prepared=True)
        model, encoded = self.train(with_canaries, canaries, threads, context.say)
        text = [] if model.kind == "ngram" else self._write(model, encoded, threads)
        with model.ready(threads=threads):
            bits = exposures(canaries, score_of(model), rng)
        numbers = tuple(map(str, range(len(text))))
        released = PlainNotes(tuple(text), numbers, numbers)
        taken = extracted(canaries, released.as_corpus())
        found = canary_findings(canaries, bits, taken, (model.kind, "the model"))
        if not text:
            return [one for one in found if one.measure == "attack.canary_exposure"]
        n_grams = model_of_text(released, model.vocabulary)
        bits = exposures(canaries, score_of(n_grams), rng)
        by_text = canary_findings(canaries, bits, taken, (model.kind, "released notes"))
        return found + [one for one in by_text if one.measure == "attack.canary_exposure"]

    def train(
        self, notes: PlainNotes, canaries: Sequence[Canary], threads: int, say: Say
    ) -> tuple[LanguageModel, EncodedNotes]:
        """Return the model trained on notes with canaries, whose vocabulary has all secrets, and
        the notes.
        """
        every = [word for canary in canaries for word in canary.text.split()]
        places = [word for canary in canaries for place in canary.family.places for word in place]
        vocabulary = make_vocabulary(notes, self.lm, always=[*every, *places])
        encoded = encode(notes.texts, vocabulary)
        model, _ = train_model(
            encoded, vocabulary, self.lm, seed=self.seed, threads=threads, say=say
        )
        return model, encoded

    def _write(self, model: LanguageModel, encoded: EncodedNotes, threads: int) -> list[str]:
        """Generate as many tokens of synthetic notes as the training has, under a public key."""
        how = SamplingConfig(batch_size_for(len(encoded)), int(encoded.lengths.max()))
        notes = written(model, encoded.ids.size, self.seed, how, threads=threads)
        return [model.vocabulary.decode(notes.note(row).tolist()) for row in range(len(notes))]


@dataclass(frozen=True)
class Family:
    """A space of secrets: a beginning, and the possible words at each position.

    Raises InputError for a position without choice.
    """

    name: str
    beginning: str
    places: tuple[tuple[str, ...], ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.places or min(len(set(place)) for place in self.places) < 2:
            raise InputError(
                f"canaries of the family {self.name} have no alternatives to choose from"
            )

    def draw(self, n: int, rng: Generator) -> list[str]:
        """Draw secrets, uniform and independent."""
        columns = [rng.integers(len(place), size=n) for place in self.places]
        return [
            " ".join(place[row[i]] for place, row in zip(self.places, columns, strict=True))
            for i in range(n)
        ]

    def text(self, secret: str) -> str:
        """Return the sentence to plant."""
        return f"{self.beginning} {secret}"


@dataclass(frozen=True)
class Canary:
    """One secret, and how often it is planted (0: the control)."""

    family: Family
    secret: str = field(repr=False)
    repeats: int

    @property
    def text(self) -> str:
        """Return the sentence to plant."""
        return self.family.text(self.secret)


def invent(
    families: Sequence[Family],
    rng: Generator,
    *,
    repeats: Sequence[int] = REPEATS,
    each: int = 5,
    unplanted: int = UNPLANTED,
) -> list[Canary]:
    """Return `each` canaries per family and number of repeats, and `unplanted` that are never
    planted.
    """
    counts = [(0, unplanted), *((n, each) for n in repeats)]
    wanted = [(family, n) for family in families for n, number in counts for _ in range(number)]
    return [Canary(family, family.draw(1, rng)[0], n) for family, n in wanted]


def planted(corpus: Corpus, canaries: Sequence[Canary], rng: Generator) -> MemoryCorpus:
    """Append each canary to notes of one random patient, as often as required; a note may get
    several.

    Raises InputError if there are no notes. Streams the corpus once for its ids, and once at each
    pass.
    """
    by_patient: dict[str, list[str]] = {}
    for note in rows(corpus):
        by_patient.setdefault(note.patient_id, []).append(note.note_id)
    if not by_patient:
        raise InputError("there are no notes to plant canaries in")
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
        texts = [
            None if text is None else "\n".join([text, *additions.get(note, ())])
            for note, text in notes
        ]
        yield batch.set_column(
            batch.schema.get_field_index(TEXT), TEXT, pa.array(texts, type=batch[TEXT].type)
        )


def expected_exposure(references: int = REFERENCES) -> float:
    """Return the exact mean exposure in bits of a secret never planted: its rank is uniform over 1
    to references + 1.

    For 1,000 references 1.436; 1 / ln 2 = 1.443 in the limit.
    """
    return float(np.mean(np.log2(references + 1) - np.log2(np.arange(1, references + 2))))


def exposures(
    canaries: Sequence[Canary], score: Score, rng: Generator, *, references: int = REFERENCES
) -> Doubles:
    """Return exposure in bits, (n_canaries,): log2 |R| - log2 rank, with R `references` fresh draws
    and the canary.

    The rank is 1 + the number of references with a higher score + a uniform draw from 0 to the
    number with the same score. Exposure is at most log2(references + 1), about 10 bits for 1,000;
    for secrets never planted the mean is `expected_exposure`.

    Raises InputError for scores that are not finite.
    """
    found = np.empty(len(canaries))
    for family in {canary.family.name: canary.family for canary in canaries}.values():
        rows = [i for i, canary in enumerate(canaries) if canary.family.name == family.name]
        fresh = [family.text(secret) for secret in family.draw(references, rng)]
        # In one call, so that equal probabilities are equal to the last bit.
        scored = score([*fresh, *(canaries[i].text for i in rows)])
        if not np.isfinite(scored).all():
            raise InputError("the model gives a canary zero probability")
        drawn = np.sort(scored[:references])
        own = scored[references:]
        greater = references - np.searchsorted(drawn, own, side="right")
        equal = references - greater - np.searchsorted(drawn, own, side="left")
        found[rows] = np.log2(references + 1) - np.log2(
            1 + greater + rng.integers(0, equal, endpoint=True)
        )
    return found


def extracted(canaries: Sequence[Canary], released: Corpus) -> Mask:
    """Return whether the entire secret occurs in released notes, word for word, (n_canaries,)."""
    vocabulary = WordIds()
    secrets = [vocabulary.add(_spelled(canary.secret)) for canary in canaries]
    automaton = SuffixAutomaton(separated(secrets))
    for _, _, text in rows(released):
        automaton.stream(vocabulary.ids(_spelled(text)))
    ends = np.cumsum([ids.size + 1 for ids in secrets]) - 2
    return np.asarray(automaton.runs()[ends] >= [ids.size for ids in secrets])


def _spelled(text: str) -> list[str]:
    """Return words, with digits as separate words, because `words_of` ignores numbers."""
    spaced = "".join(f" {c} " if c.isdecimal() else c for c in text)
    return [
        form for part in spaced.split() for form in ([part] if part.isdecimal() else words_of(part))
    ]


def families(notes: PlainNotes, rng: Generator) -> list[Family]:
    """Return phrases of common words of the notes, record numbers, and full names."""
    from clinveil.corpus import dictionary
    from clinveil.lexicons import all_given_names, surnames

    counts = dictionary(notes.texts, notes.patients).counts
    common = [word for word, _ in counts.most_common() if word.isascii() and word.isalpha()][
        :COMMON
    ]
    pools = [sorted(names) for names in (all_given_names(), surnames())]
    given, family = (
        [pool[i].capitalize() for i in rng.permutation(len(pool))[:NAMES]] for pool in pools
    )
    # Digits one by one and common words are in every vocabulary.
    return [
        Family("phrase", "reference phrase", (tuple(common),) * 5),
        Family("number", "record number", (tuple("0123456789"),) * 7),
        Family("name", "contact person", (tuple(given), tuple(family))),
    ]


def score_of(model: LanguageModel) -> Score:
    """Return the log-probability of a sentence on a separate line, without the end of the note."""

    def score(texts: Sequence[str]) -> Doubles:
        logs = model.score([model.vocabulary.encode(f"\n{text}") for text in texts])
        return np.array([one[:-1].sum() for one in logs])

    return score


def canary_findings(
    canaries: Sequence[Canary],
    bits: Doubles,
    taken: Mask,
    attacked: tuple[str, ...] = (),
    *,
    references: int = REFERENCES,
) -> list[Finding]:
    """Return mean exposure and share extracted, by family and number of repeats; control: those
    never planted.

    Args:
        attacked: labels of the model and of its text. references: as in `exposures`. A canary that
            ranks first may be exposed further; `at_ceiling` counts these.
    """
    found: list[Finding] = []
    repeat_counts = np.array([canary.repeats for canary in canaries])
    for family in dict.fromkeys(canary.family.name for canary in canaries):
        rows = np.array([canary.family.name == family for canary in canaries])
        never = rows & (repeat_counts == 0)
        for n in sorted(set(repeat_counts[rows].tolist()) - {0}):
            these = rows & (repeat_counts == n)
            labels = ("1 time" if n == 1 else f"{n} times", *attacked, family)
            numbers = {"repeats": n, "unplanted": int(never.sum())}
            exposure = _exposure(bits[these], bits[never], references)
            found.append(
                replace(
                    exposure,
                    labels=(*labels, *exposure.labels),
                    numbers={**numbers, **exposure.numbers},
                )
            )
            hits = int(taken[these].sum())
            counts = HitCounts(hits=hits, tries=int(these.sum()), control=_control(taken[never]))
            extraction = EXTRACTION.share(counts, labels=labels, numbers=numbers)
            found.append(tagged(extraction, "recipient", "planted names", gated=False))
    return found


def _exposure(bits: Doubles, never: Doubles, references: int) -> Finding:
    n = bits.size
    most = float(np.log2(references + 1))
    at_ceiling = int((bits >= most - 1e-9).sum())
    warning = ""
    if at_ceiling:
        warning = (
            f"{most:.2f} bits is the maximum for {references:,} fresh draws; the true exposure may"
            " be higher"
        )
    low = None
    high = None
    method = ""
    is_constant = float(np.ptp(bits)) == 0  # one canary, or all at the ceiling
    if not is_constant:
        ends = t_interval(bits)
        low = max(0.0, ends.low)
        high = min(most, ends.high)
        method = FEW if n < 20 else BY_T
    return Finding(
        "attack.canary_exposure",
        float(bits.mean()),
        n,
        "lower",
        low,
        high,
        chance=expected_exposure(references),
        chance_is=CHANCE_IS,
        control=_control(never),
        control_is=CONTROL_IS,
        control_kind="negative",
        source=SOURCE,
        numbers={
            "references": references,
            "most": float(bits.max()),
            "ceiling": most,
            "at_ceiling": at_ceiling,
        },
        labels=(f"{at_ceiling} of {n} at the ceiling",) if at_ceiling else (),
        unit="canaries",
        why=ALIKE if is_constant else "",
        warning=warning,
        # -log2 of a uniform variable bounds the exposure of a uniform rank.
        p=float(gammaincc(n, float(bits.sum()) * np.log(2))),
        p_is=P_IS,
        method=method,
    )


def _control(never: Doubles | Mask) -> float | None:
    """Return the result for canaries never planted."""
    return float(never.mean()) if never.size else None
