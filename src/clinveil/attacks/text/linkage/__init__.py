"""Linkage: whose note is this? Released notes are matched with what somebody knows of the people they are about.

What is known: whole texts (the source notes, or anything else about the same people), a few words of each in a row, the
other notes of a patient, or public texts about the patients (`Context.public`). The adversaries: a recipient without
vectors, a recipient who trains shadow vectors on the known texts, and an attacker with the channel. It works on any
protected text, so that other tools' outputs can be measured too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.text.linkage.combined import combined
from clinveil.attacks.text.linkage.figures import Linked, unprotected
from clinveil.attacks.text.linkage.likelihood import FRAGMENT_SHARES, SHARES, Likely, in_order, in_windows
from clinveil.attacks.text.linkage.matchers import bm25, length, mean_vector, tfidf
from clinveil.attacks.text.linkage.own import Own
from clinveil.attacks.text.linkage.sides import Sides, other_notes, paired, unsampled
from clinveil.attacks.threats import Holding, Target, tagged
from clinveil.channel.channel import Channel
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles
from clinveil.core.words import words_beside
from clinveil.stats.findings import unmeasured
from clinveil.vectors.table import Vectors

NOTES = 300
TRAINED_ON = 600  # notes, of shadow vectors
WORDS_KNOWN = 10  # in a row, of the target "note by ten words"
WITHOUT, OWN, WITH = "without the vectors", "own vectors", "with the channel"
_HOLDINGS: Mapping[str, Holding] = {WITHOUT: "recipient", OWN: "shadow", WITH: "stolen-vectors"}


@attacks.register("linkage")
class Linkage(Attack):
    """Find whose note a released note is, among people of whom something is known."""

    needs = frozenset({"released", "original"})
    words = words_beside(__path__[0])
    on_release = True
    order = 450
    match: str | None = flag(None, "Column of both that pairs them, or `patient`; without it the note ids.")
    fragment: int = flag(10, "Words in a row that are known of a note, in the second view; 0: no such view.", ge=0)
    top: int = flag(10, "The right one among so many counts as found, in the detail.", ge=1)
    most: int = flag(NOTES, "Released notes at most, a random sample; as many people are told apart.", ge=2)
    own_vectors: bool = flag(True, "Also a recipient who trains shadow vectors.")
    public_match: str = flag("patient", "Column that pairs the release with public texts, or `patient`.", min_length=1)
    each: bool = flag(False, "Also every matcher alone.")

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """`original`: what is known, the source notes or other texts. With the channel also who holds that.

        Raises InputError where fewer than two people have a note and a known text; of a release a finding says so.
        """
        try:
            views = self._views(context, rng)
        except InputError:
            if context.entered is None:
                raise
            return [unmeasured("attack.linkage", "fewer than two people have a released note", unit="notes")]
        vectors = context.vectors[0] if context.vectors else None
        own = _own(views[0].sides, rng, context) if self.own_vectors else None
        held = Held(context.channel, vectors, own)
        return [finding for view in views for finding in view.findings(held, rng, top=self.top, each=self.each)]

    def _views(self, context: Context, rng: Generator) -> list[View]:
        """What may be known of people: whole texts, fragments of them, and other notes of the patient."""
        assert context.released is not None and context.original is not None
        how = {"match": self.match, "crosswalk": context.notes, "limit": self.most}
        sides = paired(context.released, context.original, rng, **how)  # type: ignore[arg-type]
        views = [View("whole texts", sides, target="note by its whole text")]
        if self.fragment:
            views.append(View(f"{self.fragment} words in a row", sides.fragments(self.fragment, rng), fragment=True))
        if self.fragment == WORDS_KNOWN:
            views[-1] = replace(views[-1], target="note by ten words")
        if (context.channel is not None or context.entered is not None) and self.match is None:
            more = other_notes(context.released, context.original, rng, crosswalk=context.notes, limit=self.most)
            target: Target = "note by the patient's other notes"
            views += [View("the patient's other notes", more, target=target)] if more else []
        return [*views, *self._public(context, rng)]

    def _public(self, context: Context, rng: Generator) -> Iterator[View]:
        """Public texts about the patients, where they are given."""
        if context.public is None:
            return
        assert context.released is not None
        crosswalk = context.patients if self.public_match == "patient" else context.notes
        how: dict[str, Any] = {"match": self.public_match, "crosswalk": crosswalk, "limit": self.most}
        sides = paired(context.released, context.public, rng, **how)
        yield View("public texts", sides, target="note by public knowledge")


def _own(sides: Sides, rng: Generator, context: Context) -> Own | None:
    """Shadow vectors and channels; None where the texts have too few words for them.

    Of a release they are trained on source notes that are not attacked, which stand for similar public notes; in a
    release of fewer than twice `NOTES` notes, and elsewhere, on the known texts themselves.
    """
    release = context.entered is not None and context.original is not None
    texts = unsampled(context.original, sides, TRAINED_ON, rng) if release else []  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix=".clinveil-linkage", dir=context.scratch) as scratch, suppress(InputError):
        return Own.of(sides, rng, Path(scratch), like=context.channel, texts=texts, threads=context.workers)
    return None


@dataclass(frozen=True, eq=False)
class Held:
    """What the attackers hold: the channel of the release, its vectors, or vectors and channels of their own."""

    channel: Channel | None = None
    vectors: Vectors | None = None
    own: Own | None = None


@dataclass(frozen=True, eq=False)
class View:
    """One thing that is known of people.

    Attributes:
        known: what it is, in words. sides: the notes and it. target: the row of the adversary table, where it has one.
        fragment: whether it is a piece of the note; then released notes are looked for by it, else whose a note is.
    """

    known: str
    sides: Sides = field(repr=False)
    fragment: bool = False
    target: Target | None = None

    def findings(self, held: Held, rng: Generator, *, top: int = 10, each: bool = False) -> list[Finding]:
        """Every attacker's, who combines his matchers; with `each` also of each matcher alone."""
        found: list[Finding] = []
        scores: dict[str, Doubles] = {}
        for attacker, more in self._attackers(held):
            scores |= more
            if each:
                found += [one for name, made in more.items() for one in self._linked(name, made).findings(rng, top=top)]
            made = self.combined(attacker, list(scores.values()), rng).findings(rng, top=top)
            found += [self._placed(attacker, one) for one in made]
        return [*found, *([unprotected(self.unprotected(rng), self.known)] if self.fragment else [])]

    def _placed(self, attacker: str, finding: Finding) -> Finding:
        """The share of notes linked, with its place in the adversary table."""
        if self.target is None or finding.measure != "attack.linkage":
            return finding
        gated = attacker != WITH and self.target != "note by its whole text"
        return tagged(finding, _HOLDINGS[attacker], self.target, gated=gated)

    def combined(self, attacker: str, scores: Sequence[Doubles], rng: Generator) -> Linked:
        """All matchers of an attacker as one."""
        linked = self._linked(attacker, scores[0])
        turned = [self._linked(attacker, one).scores for one in scores]
        return replace(linked, scores=combined(turned, linked.truth, linked.people, rng))

    def _linked(self, attacker: str, scores: Doubles) -> Linked:
        told = {"attacker": attacker, "against": self.known, "left_out": self.sides.left_out}
        return Linked(
            scores.T if self.fragment else scores, self.sides.truth, self.sides.people, told, self.sides.rarest
        )

    def unprotected(self, rng: Generator) -> Linked:
        """The first attacker's figures, were the known texts released as they are."""
        plain = replace(self.sides, released=[self.sides.whole[j] for j in self.sides.truth])
        scores = list(_without(plain, fragment=self.fragment).values())
        return replace(self, sides=plain).combined(WITHOUT, scores, rng)

    def _attackers(self, held: Held) -> Iterator[tuple[str, Mapping[str, Doubles]]]:
        """Who attacks, and the matchers that he has beyond those of the one before."""
        yield WITHOUT, _without(self.sides, fragment=self.fragment)
        if held.own is not None:
            yield OWN, self._by_own(held.own)
        if held.channel is not None:
            more = {"mean vector": mean_vector(self.sides, held.vectors)} if held.vectors else {}
            yield WITH, {**self._by_channel(held.channel), **more}

    def _by_own(self, own: Own) -> dict[str, Doubles]:
        scores = {"mean of own vectors": mean_vector(self.sides, own.vectors)}
        for number, channel in enumerate(own.channels, 1):
            scores |= {f"own {name} {number}": one for name, one in self._by_channel(channel).items()}
        return scores

    def _by_channel(self, channel: Channel) -> dict[str, Doubles]:
        likely = Likely.of(self.sides, channel)
        shares = FRAGMENT_SHARES if self.fragment else SHARES
        scores = {"channel": likely.mixture(shares), "channel, each output once": likely.mixture(shares, once=True)}
        if self.fragment:
            scores["channel, all of its words"] = likely.covered()
            scores["channel, words in order"] = in_order(self.sides, channel)
            scores["channel, words in a window"] = in_windows(self.sides, channel, channel.policy.window)
        return scores


def _without(sides: Sides, *, fragment: bool) -> dict[str, Doubles]:
    """The matchers that need no channel."""
    found = {
        "words": tfidf(sides),
        "word pairs": tfidf(sides, pairs=True),
        "BM25": bm25(sides, asked_by_known=fragment),
    }
    return found if fragment else {**found, "length and layout": length(sides)}


__all__ = ["Held", "Linkage", "Own", "Sides", "View", "other_notes", "paired"]
