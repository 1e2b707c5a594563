"""Run every reader on the same released words: the word recovery of each adversary.

Each finding states what the attacker knows, the best blind guess of its kind of words (chance), and the same attack
with outputs permuted among all positions (negative control). One finding of each reader is the positive control: the
share recovered where every word was released unchanged.

For rare words, names and planted names the attacker knows that the word is of that kind: a list of surnames and a "Mr."
before the word is enough. Slow adversaries attack at most `Adversary.at_most` words, unless `tokens` is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversary import KNOWLEDGE, Adversary, AdversaryView, AlignedNote, adversaries
from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._canaries import EACH, planted
from clinveil.attacks.channel._scoring import Scored, Scores
from clinveil.attacks.channel._strata import word_strata
from clinveil.attacks.channel._view import halves, scenes
from clinveil.attacks.threats import GATED, Target, tagged
from clinveil.channel.identity import identity_channel
from clinveil.core.finding import Finding
from clinveil.core.settings import choice, flag
from clinveil.core.types import Mask
from clinveil.core.words import words_beside
from clinveil.stats.findings import clustered_share, unmeasured

IN_A_RELEASE = 40_000
CONTROLLED, PROVED = 10_000, 2_000
TARGETS: Mapping[str, Target] = {
    "names": "names",
    "canaries": "planted names",
    "all": "words",
    "rare": "rare words",
}
GATED_TARGETS: frozenset[Target] = frozenset({"names", "planted names"})
TOLD = frozenset({"rare", "names", "canaries"})
MEASURE = "attack.reading"
NONE_OF_THEM = "no such word among those attacked"
SOURCE = "reconstruction by context: readers of clinveil.attacks.adversaries, each with its source"
BESIDE: Mapping[str, Any] = {
    "unit": "tokens",
    "chance_is": "always naming the most frequent of these words",
    "control_is": "the same reader, outputs dealt out anew among all places",
    "control_kind": "negative",
}


@attacks.register("adversary-suite")
class AdversarySuite(Attack):
    """Share of released words that each adversary recovers."""

    needs = frozenset({"channel", "counts", "released", "entered"})
    words = words_beside(__file__)
    on_release = True
    order = 150
    reader: tuple[str, ...] = choice(adversaries, (), "Readers to try; repeatable (default: those of every release).")
    tokens: int | None = flag(None, "Released words that are attacked (default: 40,000 in a release).", ge=100)
    others: int = flag(1_000_000, "Words of other patients' notes that an attacker has, at most.", ge=0)
    canaries: int = flag(EACH, "Patients into copies of whose notes a name is planted, as a test.", ge=0)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Raises InputError for fewer than two patients, and where notes and channel do not belong together."""
        found = halves(context, self.tokens or IN_A_RELEASE, self.others, rng)
        cases = scenes(context, found, rng)
        names = context.full_names
        assert cases[0].counts is not None
        strata = word_strata(cases[0].channel, cases[0].counts, names)
        about = {"left_out": found.left_out.total(), "released_words": sum(map(len, cases[0].released))}
        canaries = planted(found, cases, strata["names"], self.canaries, rng)
        _say_sample(context, cases, about["left_out"])
        findings: list[Finding] = []
        for name, reader in self._chosen():
            if all(reader.can(view) for view in cases):
                every = reader.at_most is None or (self.tokens and self.reader)
                few = cases if every else _fewer(cases, reader.at_most or IN_A_RELEASE)
                findings += _Rung(name, reader, few, strata, about).findings(canaries, rng)
            elif "pairs" in reader.knows and not self.reader:
                findings += _too_few_pairs(name, reader, cases)
            elif self.reader:
                findings.append(unmeasured(f"{MEASURE}.all", _lacks(reader, cases), detail=_who(name, reader)))
        return findings

    def _chosen(self) -> list[tuple[str, Adversary]]:
        """The readers by name: those that were asked for at their defaults, or those of every release."""
        if self.reader:
            named = sorted(self.reader, key=lambda name: (adversaries.get(name).order, name))
            return [(name, adversaries.get(name)()) for name in named]
        every = sorted(adversaries, key=lambda pair: (pair[1].order, pair[0]))
        return [(name, kind(**setting)) for name, kind in every for setting in kind.in_release]


def _say_sample(context: Context, cases: Sequence[AdversaryView], left_out: int) -> None:
    words = sum(len(note) for view in cases for note in view.notes)
    held = [sum(map(len, view.others)) for view in cases]
    patients = len({note.patient for view in cases for note in view.notes})
    context.say(f"attacked: {words:,} released words of {patients:,} patients; {left_out:,} notes left out")
    context.say(f"known to an attacker: up to {max(held):,} words of other notes")


def knowledge(reader: Adversary) -> str:
    """What a reader knows, in words."""
    return "; ".join(KNOWLEDGE[known] for known in KNOWLEDGE if known in reader.knows) or "nothing but the release"


def _who(name: str, reader: Adversary) -> dict[str, Any]:
    label = f"{name}, {reader.variant}" if reader.variant else name
    return {"reader": label, "knowledge": knowledge(reader)}


def _too_few_pairs(name: str, reader: Adversary, cases: Sequence[AdversaryView]) -> Iterator[Finding]:
    """Findings without a value, where a release has fewer notes of other patients than the attacker is to hold."""
    held = min(len(view.pairs) for view in cases)
    why = f"the release has {held} notes of other patients, fewer than this attacker holds"
    for stratum in TARGETS:
        detail = {**_who(name, reader), "stratum": stratum}
        yield _placed(unmeasured(f"{MEASURE}.{stratum}", why, detail=detail, source=SOURCE, unit="tokens"), reader)


def _placed(finding: Finding, reader: Adversary) -> Finding:
    """The finding with its place in the adversary table, where it has one."""
    target = TARGETS.get(str(finding.detail["stratum"]))
    if reader.holding is None or target is None:
        return finding
    gated = target in GATED_TARGETS and reader.holding in GATED
    return tagged(finding, reader.holding, target, gated=gated)


def _lacks(reader: Adversary, cases: Sequence[AdversaryView]) -> str:
    shuffled = not all(view.channel.policy.keeps_order for view in cases)
    return f"what he needs is not at hand ({'words are shuffled' if shuffled else knowledge(reader)})"


@dataclass(frozen=True, eq=False)
class _Rung:
    """One reader before all scenes."""

    name: str
    reader: Adversary
    cases: Sequence[AdversaryView]
    strata: Mapping[str, Mask]
    about: Mapping[str, Any]

    def findings(self, canaries: Sequence[tuple[AdversaryView, Mask]], rng: Generator) -> Iterator[Finding]:
        """One for each kind of words, planted names and the positive control among them."""
        read = self._read(self.cases, rng)
        few = _fewer(self.cases, min(CONTROLLED, (self.reader.at_most or 2 * CONTROLLED) // 2))
        control = self._read([_dealt(view, rng) for view in few], rng)
        for stratum, among in self.strata.items():
            yield _placed(self._finding(stratum, among, read, control.kind(stratum, among)), self.reader)
        if canaries and all(self.reader.can(view) for view, _ in canaries):
            yield _placed(self._canaries(canaries, rng), self.reader)
        yield self._positive(rng)

    def _read(self, cases: Sequence[AdversaryView], rng: Generator) -> Scores:
        """What was read, of some kinds of words by who knows that they are of it."""
        readings = (reading for view in cases for reading in self.reader.read(view, rng))
        told = {kind: (among, self._usual(among)) for kind, among in self.strata.items() if kind in TOLD}
        return Scores.of((note for view in cases for note in view.notes), readings, self._n_words, told)

    @property
    def _n_words(self) -> int:
        return self.strata["all"].size - 1

    def _usual(self, among: Mask) -> int:
        """The most frequent word of a kind, in the notes that the attackers have."""
        prior = np.where(among[:-1], self.cases[0].prior, 0)
        return int(np.argmax(prior)) if among[:-1].any() else -1

    def _finding(self, stratum: str, among: Mask, read: Scores, control: Scored) -> Finding:
        got = read.kind(stratum, among)
        detail = {**_who(self.name, self.reader), "stratum": stratum, **self.about}
        if not got.truth.size:
            return unmeasured(f"{MEASURE}.{stratum}", NONE_OF_THEM, detail=detail, source=SOURCE, unit="tokens")
        detail |= _figures(got, calibrated=self.reader.calibrated)
        if stratum in TOLD:
            detail["not_told"] = float(read.plain.where(among).right.mean())
        if stratum == "all":
            detail |= {"span_median": float(np.median(read.longest)), "span_most": int(read.longest.max())}
        held = control.right.mean() if control.truth.size else None
        told: dict[str, Any] = {"chance": got.usual, "control": held, "source": SOURCE, **BESIDE}
        return clustered_share(f"{MEASURE}.{stratum}", got.by_patient, over="patients", detail=detail, **told)

    def _canaries(self, canaries: Sequence[tuple[AdversaryView, Mask]], rng: Generator) -> Finding:
        """Names planted in copies of notes, which were written with the same channel under a key that is gone."""
        read = self._read([view for view, _ in canaries], rng)
        got = read.told["names"].at(np.concatenate([where for _, where in canaries]))
        detail = {**_who(self.name, self.reader), "stratum": "canaries", "planted": len(np.unique(got.patient))}
        told: dict[str, Any] = {"chance": got.usual, "source": SOURCE, "unit": "tokens"}
        told["chance_is"] = "always naming the planted name that stands most often"
        return clustered_share(f"{MEASURE}.canaries", got.by_patient, over="patients", detail=detail, **told)

    def _positive(self, rng: Generator) -> Finding:
        """The same reader where every word came out as it went in."""
        some = [_unprotected(view) for view in _fewer(self.cases, PROVED)]
        got = self._read(some, rng).plain
        detail = {**_who(self.name, self.reader), "stratum": "all", "unprotected": True}
        told: dict[str, Any] = {"better": None, "chance": got.usual, "chance_is": BESIDE["chance_is"], "unit": "tokens"}
        return clustered_share(f"{MEASURE}.unprotected", got.by_patient, over="patients", detail=detail, **told)


def _figures(got: Scored, *, calibrated: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"first_five": got.first(5), "mean_rank": float(got.rank.mean())}
    if calibrated:
        asserted, precision = got.sure
        told |= {"sure_of": asserted, "right_where_sure": precision}
    return told


def _fewer(cases: Sequence[AdversaryView], words: int) -> list[AdversaryView]:
    """The first notes of each scene, of so many words in all; they are in no order."""
    return [_first(view, words // len(cases)) for view in cases]


def _first(view: AdversaryView, words: int) -> AdversaryView:
    ends = np.cumsum([len(note) for note in view.notes])
    n = int(np.searchsorted(ends, words)) + 1
    return replace(view, notes=view.notes[:n])


def _dealt(view: AdversaryView, rng: Generator) -> AdversaryView:
    """The same notes with their outputs dealt out anew among all places."""
    outputs = rng.permutation(np.concatenate([note.outputs for note in view.notes]))
    rng.permutation(outputs.size)  # not used; without it, all later draws would differ from those of earlier versions
    parts = np.split(outputs, np.cumsum([len(note) for note in view.notes])[:-1])
    return replace(view, notes=[replace(note, outputs=part) for note, part in zip(view.notes, parts, strict=True)])


def _unprotected(view: AdversaryView) -> AdversaryView:
    """Every known word as it went in, and a channel that does just that."""
    plain = replace(identity_channel(view.channel.words), policy=view.channel.policy)

    def known(note: AlignedNote) -> AlignedNote:
        kept = note.truth < plain.unknown
        return AlignedNote(note.truth[kept], note.truth[kept], note.places[kept], note.patient)

    notes, pairs = ([known(note) for note in some if (note.truth < plain.unknown).any()] for some in _sides(view))
    released = [note.outputs for note in (*notes, *pairs)]
    sides: dict[str, Any] = {"notes": notes, "pairs": pairs, "released": released}
    return replace(view, channel=plain, shadow=None, memory={}, **sides)


def _sides(view: AdversaryView) -> tuple[Sequence[AlignedNote], Sequence[AlignedNote]]:
    return view.notes, view.pairs
