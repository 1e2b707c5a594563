"""Run every adversary on the same released words and score how many words each one recovers.

Each finding records what the attacker knows, the best blind guess of that kind of words (chance),
and the same attack with outputs permuted among all positions (negative control). One finding of
each adversary is a positive control: the share recovered if every word were released unchanged.

For rare words, names and planted names the attacker knows that the word is of that kind: a list of
surnames and a "Mr." before the word is enough. Slow adversaries attack at most
`Adversary.max_words` words. Chance is that of all attacked
words for each of them: the most frequent of a few words has a large share by chance, and would hide
a success.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversary import (
    ADVERSARIES,
    KNOWLEDGE,
    Adversary,
    AdversaryView,
    NoteRows,
    Recovery,
)
from clinveil.attacks.attack import Attack, Context
from clinveil.attacks.channel._view import EACH, adversary_views, halves, planted
from clinveil.attacks.channel.inversion import word_strata
from clinveil.attacks.threats import Target, tagged
from clinveil.channel import identity_channel
from clinveil.core import Finding, Ints, Mask, Numbers, setting
from clinveil.stats import HitCounts, MeasureSpec

IN_A_RELEASE = 40_000
CONTROLLED = 10_000
PROVED = 2_000
BATCH = 1_000_000  # candidates that are scored at a time
TARGETS: Mapping[str, Target] = {
    "names": "names",
    "canaries": "planted names",
    "all": "words",
    "rare": "rare words",
}
KIND_KNOWN = frozenset({"rare", "names", "canaries"})
STRATA = {
    "all": "all words",
    "rare": "rare words",
    "content": "content words",
    "function": "function words",
    "canaries": "planted names",
}
MEASURE = "attack.reading"
UNPROTECTED = "attack.reading.unprotected"
NO_WORDS = "no such word among the attacked words"
SOURCE = "word recovery by adversaries of clinveil.attacks.adversaries; each gives its source"
CHANCE_IS = "always naming the most frequent of these words, in all attacked notes"
CONTROL_IS = "the same adversary with outputs permuted among all positions"


class AdversarySuite(Attack):
    """Measure the share of released words that each adversary recovers."""

    needs = frozenset({"channel", "counts", "released", "entered"})
    on_release = True
    order = 150
    tokens: int | None = setting(
        None, "Released words to attack (default: 40,000 in a release).", ge=100
    )
    others: int = setting(
        1_000_000, "Maximum words of other patients' notes that an attacker has.", ge=0
    )
    canaries: int = setting(
        EACH, "Patients with a name planted in copies of their notes, as a test.", ge=0
    )

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the adversaries. Raises InputError for fewer than two patients, or if notes and
        channel do not match.
        """
        halves_ = halves(context, self.tokens or IN_A_RELEASE, self.others, rng)
        views = adversary_views(context, halves_)
        names = context.full_names
        assert views[0].counts is not None
        strata = word_strata(views[0].channel, views[0].counts, names)
        numbers = {
            "left_out": halves_.left_out.total(),
            "released_words": sum(map(len, views[0].released)),
        }
        chances = most_frequent_shares(views, strata)
        canaries = planted(halves_, views, strata["names"], self.canaries, rng)
        attacked = sum(len(n) for v in views for n in v.notes)
        patients = {n.patient for v in views for n in v.notes}
        left = numbers["left_out"]
        known = max(sum(map(len, view.others)) for view in views)
        context.say(
            f"attacked: {attacked:,} released words of {len(patients):,} patients; {left:,} notes"
            " left out"
        )
        context.say(f"known to an attacker: up to {known:,} words of other notes")
        findings: list[Finding] = []
        in_order = sorted(ADVERSARIES, key=lambda pair: (pair[1].order, pair[0]))
        for name, reader in [
            (name, kind.model_validate(variant))
            for name, kind in in_order
            for variant in kind.in_release
        ]:
            if all(reader.is_applicable(view) for view in views):
                sample = (
                    views if reader.max_words is None else _first_words(views, reader.max_words)
                )
                run = _AdversaryRun(name, reader, sample, strata, chances, numbers)
                findings += run.findings(canaries, rng)
            elif "pairs" in reader.knowledge:
                findings += _too_few_pairs(name, reader, views)
        return findings


def describe_knowledge(reader: Adversary) -> str:
    """Describe what an adversary knows."""
    return (
        "; ".join(KNOWLEDGE[known] for known in KNOWLEDGE if known in reader.knowledge)
        or "only the release"
    )


def _too_few_pairs(
    name: str, reader: Adversary, views: Sequence[AdversaryView]
) -> Iterator[Finding]:
    """Yield findings without a value, for a release with fewer notes of other patients than the
    attacker has.
    """
    n_held = min(len(view.pairs) for view in views)
    why = f"the release has {n_held} notes of other patients, fewer than this attacker holds"
    for stratum in TARGETS:
        yield _of_adversary(_spec(stratum).missing(why), name, reader, stratum)


def _spec(stratum: str) -> MeasureSpec:
    return MeasureSpec(
        measure=f"{MEASURE}.{stratum}",
        over="patients",
        unit="tokens",
        source=SOURCE,
        chance_is=CHANCE_IS,
        control_is=CONTROL_IS,
        control_kind="negative",
    )


def _of_adversary(finding: Finding, name: str, reader: Adversary, stratum: str) -> Finding:
    """Return the finding with its adversary, and its cell of the adversary table if it has one."""
    labelled = replace(
        finding,
        attack=f"{name}, {reader.variant}" if reader.variant else name,
        knowledge=describe_knowledge(reader),
        labels=(STRATA.get(stratum, stratum),),
    )
    target = TARGETS.get(stratum)
    if reader.holding is None or target is None or finding.measure == UNPROTECTED:
        return labelled
    return tagged(labelled, reader.holding, target)


@dataclass(frozen=True, eq=False)
class _AdversaryRun:
    """One adversary with all views."""

    name: str
    reader: Adversary
    views: Sequence[AdversaryView]
    strata: Mapping[str, Mask]
    chances: Mapping[str, float]
    numbers: Numbers

    def findings(
        self, canaries: Sequence[tuple[AdversaryView, Mask]], rng: Generator
    ) -> Iterator[Finding]:
        """Yield one finding per kind of words, then planted names and the positive control."""
        read = self._scores(self.views, rng)
        sample = _first_words(
            self.views, min(CONTROLLED, (self.reader.max_words or 2 * CONTROLLED) // 2)
        )
        control = self._scores([_permuted(view, rng) for view in sample], rng)
        for stratum, among in self.strata.items():
            scores = read.get(stratum, read["all"])
            others = control.get(stratum, control["all"])
            one = scores.at(among[scores.truth])
            other = others.at(among[others.truth])
            yield self._of_self(self._finding(stratum, one, other), stratum)
        if canaries and all(self.reader.is_applicable(view) for view, _ in canaries):
            yield self._of_self(self._canaries(canaries, rng), "canaries")
        yield self._of_self(self._positive(rng), "all")

    def _of_self(self, finding: Finding, stratum: str) -> Finding:
        return _of_adversary(finding, self.name, self.reader, stratum)

    def _scores(self, views: Sequence[AdversaryView], rng: Generator) -> dict[str, ScoredWords]:
        """Score the recovered words; kinds in `KIND_KNOWN` by an attacker who knows the kind.

        Without a candidate of the kind, they name its most frequent word in their own notes.
        """
        recoveries = (recovery for view in views for recovery in self.reader.recover(view, rng))
        kinds: dict[str, tuple[Mask | None, int]] = {"all": (None, -1)}
        for kind in KIND_KNOWN & self.strata.keys():
            among = self.strata[kind]
            most_frequent = int(np.argmax(np.where(among[:-1], self.views[0].prior, 0)))
            kinds[kind] = among, most_frequent if among[:-1].any() else -1
        return scores_by_kind((note for view in views for note in view.notes), recoveries, kinds)

    def _finding(self, stratum: str, scores: ScoredWords, control: ScoredWords) -> Finding:
        spec = _spec(stratum)
        if not scores.truth.size:
            return spec.missing(NO_WORDS, numbers=self.numbers)
        counts = HitCounts.of_clusters(
            scores.by_patient,
            chance=self.chances[stratum],
            control=control.is_right.mean() if control.truth.size else None,
        )
        return spec.share(counts, numbers=self.numbers)

    def _canaries(self, canaries: Sequence[tuple[AdversaryView, Mask]], rng: Generator) -> Finding:
        """Measure the names planted in copies of notes, which use the same channel under a
        discarded key.
        """
        read = self._scores([view for view, _ in canaries], rng)
        scores = read["names"].at(np.concatenate([where for _, where in canaries]))
        spec = replace(_spec("canaries"), chance_is="always naming the most frequent planted name")
        counts = HitCounts.of_clusters(scores.by_patient, chance=scores.most_frequent_share)
        return spec.share(counts, numbers={"planted": len(np.unique(scores.patient))})

    def _positive(self, rng: Generator) -> Finding:
        """Run the same adversary on words that were not replaced."""
        some = [_unprotected(view) for view in _first_words(self.views, PROVED)]
        scores = self._scores(some, rng)["all"]
        spec = replace(_spec("all"), measure=UNPROTECTED, better=None, source="")
        return spec.share(
            HitCounts.of_clusters(scores.by_patient, chance=scores.most_frequent_share)
        )


def most_frequent_shares(
    views: Sequence[AdversaryView], strata: Mapping[str, Mask]
) -> dict[str, float]:
    """Return the share of the most frequent word among the attacked words of each kind; 0 for a
    kind without words.
    """
    truth = np.concatenate([note.truth for view in views for note in view.notes])
    counts = np.bincount(truth)
    shares = {}
    for stratum, among in strata.items():
        own = np.where(among[: counts.size], counts, 0)
        shares[stratum] = float(own.max() / max(1, own.sum()))
    return shares


def _first_words(views: Sequence[AdversaryView], words: int) -> list[AdversaryView]:
    """Return the first notes of each view, about `words` words in all; notes are in random
    order.
    """
    first = []
    for view in views:
        ends = np.cumsum([len(note) for note in view.notes])
        first.append(
            replace(view, notes=view.notes[: int(np.searchsorted(ends, words // len(views))) + 1])
        )
    return first


def _permuted(view: AdversaryView, rng: Generator) -> AdversaryView:
    """Permute the outputs among all positions of the notes."""
    outputs = rng.permutation(np.concatenate([note.outputs for note in view.notes]))
    parts = np.split(outputs, np.cumsum([len(note) for note in view.notes])[:-1])
    return replace(
        view,
        notes=[note.with_outputs(part) for note, part in zip(view.notes, parts, strict=True)],
    )


def _unprotected(view: AdversaryView) -> AdversaryView:
    """Return the view of a release that leaves every known word unchanged."""
    plain = replace(identity_channel(view.channel.words), policy=view.channel.policy)

    def known(note: NoteRows) -> NoteRows:
        kept = note.truth < plain.unknown
        return NoteRows(note.truth[kept], note.truth[kept], note.patient)

    sides = (view.notes, view.pairs)
    notes, pairs = (
        [known(note) for note in some if (note.truth < plain.unknown).any()] for some in sides
    )
    released = [note.outputs for note in (*notes, *pairs)]
    return replace(view, channel=plain, cache={}, notes=notes, pairs=pairs, released=released)


@dataclass(frozen=True, eq=False)
class ScoredWords:
    """The true word, the patient, and the first candidate of every attacked word, (n,); -1 without
    a candidate.
    """

    truth: Ints
    patient: Ints
    named: Ints

    @property
    def is_right(self) -> Mask:
        """Return whether the first candidate is right, (n,)."""
        return np.asarray(self.named == self.truth)

    def at(self, mask: Mask) -> ScoredWords:
        """Select words by a mask (n,)."""
        return ScoredWords(self.truth[mask], self.patient[mask], self.named[mask])

    @property
    def by_patient(self) -> Ints:
        """Return the recovered words and the words of each patient, (n_patients, 2)."""
        _, place = np.unique(self.patient, return_inverse=True)
        return np.column_stack([np.bincount(place, self.is_right), np.bincount(place)]).astype(
            np.int64
        )

    @property
    def most_frequent_share(self) -> float:
        """Return the share of the most frequent of these words."""
        return float(np.bincount(self.truth).max() / self.truth.size)


def scored(
    notes: Sequence[NoteRows],
    recoveries: Sequence[Recovery],
    among: Mask | None = None,
    fallback: int = -1,
) -> ScoredWords:
    """Score recovered words; of candidates with equal probabilities the first row counts.

    Args:
        among: (n_words + 1,) mask of possible words; other candidates are removed.
        fallback: the guess if no candidate is left.
    """
    truth = np.concatenate([note.truth for note in notes])
    patient = np.repeat([note.patient for note in notes], [len(note) for note in notes])
    sizes = np.concatenate([np.diff(recovery.starts) for recovery in recoveries])
    if sizes.size != truth.size:
        raise ValueError("a recovery has another number of words than its note")
    place = np.repeat(np.arange(truth.size), sizes)
    rows = np.concatenate([recovery.rows for recovery in recoveries]).astype(np.int64)
    chances = np.concatenate([recovery.chances for recovery in recoveries])
    if among is not None:
        mask = among[rows]
        place = place[mask]
        rows = rows[mask]
        chances = chances[mask]
    named = np.full(truth.size, fallback, dtype=np.int64)
    if place.size:  # the positions are sorted
        first = np.flatnonzero(np.diff(place, prepend=-1))
        best = np.repeat(np.maximum.reduceat(chances, first), np.diff(first, append=place.size))
        likeliest = np.where(chances == best, rows, np.iinfo(np.int64).max)
        named[place[first]] = np.minimum.reduceat(likeliest, first)
    return ScoredWords(truth, patient, named)


def _blocks(
    notes: Iterable[NoteRows], recoveries: Iterable[Recovery]
) -> Iterator[tuple[list[NoteRows], list[Recovery]]]:
    """Yield batches of notes and recoveries; a word may have many candidates."""
    block = list[tuple[NoteRows, Recovery]]()
    size = 0
    for pair in zip(notes, recoveries, strict=True):
        if block and size + pair[1].rows.size > BATCH:
            yield [note for note, _ in block], [recovery for _, recovery in block]
            block = []
            size = 0
        block.append(pair)
        size += pair[1].rows.size
    if block:
        yield [note for note, _ in block], [recovery for _, recovery in block]


def scores_by_kind(
    notes: Iterable[NoteRows],
    recoveries: Iterable[Recovery],
    kinds: Mapping[str, tuple[Mask | None, int]],
) -> dict[str, ScoredWords]:
    """Score recoveries as they arrive, so that they need not be stored.

    Args:
        kinds: `among` and `fallback` of each kind of words that the attacker knows; None: all
            words.

    Returns: scores of every word, by an attacker who knows the kind.
    """
    parts: dict[str, list[ScoredWords]] = {kind: [] for kind in kinds}
    for block in _blocks(notes, recoveries):
        for kind, (among, fallback) in kinds.items():
            parts[kind].append(scored(*block, among, fallback))
    columns = [field.name for field in fields(ScoredWords)]
    return {
        kind: ScoredWords(
            *(np.concatenate([getattr(part, name) for part in own]) for name in columns)
        )
        for kind, own in parts.items()
    }
