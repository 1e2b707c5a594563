"""Linkage: match released notes with known information about people, to find the person of each
note.

Known information: entire texts (the source notes, or any other texts about the same people), some
consecutive words of each, other notes of a patient, or public texts about the patients
(`Context.public`). Adversaries: a recipient without vectors, a recipient with shadow vectors
trained on the known texts, and an attacker with the channel. The attack works on any protected
text, so that other tools can be measured too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context
from clinveil.attacks.text.linkage.figures import Linked, combined, unprotected
from clinveil.attacks.text.linkage.in_context import matchers_in_context
from clinveil.attacks.text.linkage.matchers import (
    FRAGMENT_SHARES,
    SHARES,
    Likelihood,
    bm25,
    in_order,
    length,
    mean_vector,
    tfidf,
)
from clinveil.attacks.text.linkage.shape import by_shape
from clinveil.attacks.text.linkage.sides import LinkageSides, Own, other_notes, paired, unsampled
from clinveil.attacks.threats import KNOWN, Holding, Target, tagged
from clinveil.channel import Channel
from clinveil.core import Doubles, Finding, InputError, setting
from clinveil.stats import MeasureSpec
from clinveil.vectors import Vectors

NOTES = 300
TRAINED_ON = 600  # notes for training shadow vectors
WORDS_KNOWN = 10  # consecutive words, for the target "note by ten words"
WITHOUT = "without the vectors"
OWN = "own vectors"
WITH = "with the channel"
SHAPE = "length and sentence ends"
SHAPED: tuple[Target, ...] = ("note by its whole text", "note by ten words")
_HOLDINGS: Mapping[str, Holding] = {WITHOUT: "recipient", OWN: "shadow", WITH: "stolen-vectors"}


class Linkage(Attack):
    """Find the person of each released note, among people with known information."""

    needs = frozenset({"released", "original"})
    optional = frozenset({"notes", "channel", "vectors"})
    on_release = True
    order = 450
    match: str | None = setting(
        None, "Column that pairs both, or `patient`; default: the note ids."
    )
    fragment: int = setting(
        10, "Known consecutive words of a note, in the second view; 0: omit it.", ge=0
    )
    top: int = setting(
        10, "Rank up to which the right candidate counts as found, in the numbers.", ge=1
    )
    most: int = setting(
        NOTES, "Maximum released notes, a random sample, and number of candidates.", ge=2
    )
    own_vectors: bool = setting(True, "Also a recipient with shadow vectors.")
    public_match: str = setting(
        "patient", "Column that pairs the release with public texts, or `patient`.", min_length=1
    )
    each: bool = setting(False, "Also report every matcher separately.")

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack. `original` is the known information: the source notes or other texts.

        Raises InputError if fewer than two people have a note and a known text; for a release, a
        finding reports it instead.
        """
        try:
            views = self._views(context, rng)
        except InputError:
            if context.entered is None:
                raise
            spec = MeasureSpec(measure="attack.linkage", unit="notes")
            return [spec.missing("fewer than two people have a released note")]
        vectors = context.vectors[0] if context.vectors else None
        own = _shadow(views[0].sides, rng, context) if self.own_vectors else None
        assets = Assets(context.channel, vectors, own)
        return [
            finding
            for view in views
            for finding in view.findings(assets, rng, top=self.top, each=self.each)
        ]

    def _views(self, context: Context, rng: Generator) -> list[View]:
        """Return what may be known about people: entire texts, fragments of them, and other notes
        of the patient.
        """
        assert context.released is not None and context.original is not None
        sides = paired(
            context.released,
            context.original,
            rng,
            match=self.match,
            crosswalk=context.notes,
            limit=self.most,
        )
        label = ""
        if context.channel is not None and context.channel.context is not None:
            label = context.channel.context.label
            sides = sides.labelled(context.released, label, context.notes)
        whole: Target = "note by its whole text"
        views = [View(KNOWN[whole], sides, target=whole)]
        if self.fragment:
            views.append(
                View(
                    f"{self.fragment} words in a row",
                    sides.fragments(self.fragment, rng),
                    fragment=True,
                )
            )
        if self.fragment == WORDS_KNOWN:
            views[-1] = replace(views[-1], target="note by ten words")
        if (context.channel is not None or context.entered is not None) and self.match is None:
            added = other_notes(
                context.released, context.original, rng, crosswalk=context.notes, limit=self.most
            )
            if added is not None:
                added = added.labelled(context.released, label, context.notes)
            target: Target = "note by the patient's other notes"
            views += [View(KNOWN[target], added, target=target)] if added else []
        if context.public is not None:
            sides = paired(
                context.released,
                context.public,
                rng,
                match=self.public_match,
                crosswalk=context.patients if self.public_match == "patient" else context.notes,
                limit=self.most,
            )
            public: Target = "note by public knowledge"
            views.append(View(KNOWN[public], sides, target=public))
        return views


def _shadow(sides: LinkageSides, rng: Generator, context: Context) -> Own | None:
    """Train shadow vectors and channels; None if the texts have too few words.

    For a release they are trained on source notes that are not attacked, in place of similar public
    notes; for a release of fewer than twice `NOTES` notes, and otherwise, on the known texts
    themselves.
    """
    texts = list[str]()
    if context.entered is not None and context.original is not None:
        texts = unsampled(context.original, sides, TRAINED_ON, rng)
    with (
        tempfile.TemporaryDirectory(prefix=".clinveil-linkage", dir=context.scratch) as scratch,
        suppress(InputError),
    ):
        return Own.of(
            sides,
            rng,
            Path(scratch),
            like=context.channel,
            released=context.released,
            texts=texts,
            threads=context.workers,
        )
    return None


@dataclass(frozen=True, eq=False)
class Assets:
    """What attackers have: the channel of the release, its vectors, or shadow vectors and
    channels.
    """

    channel: Channel | None = None
    vectors: Vectors | None = None
    own: Own | None = None


@dataclass(frozen=True, eq=False)
class View:
    """One kind of known information.

    Attributes:
        known: its name. sides: the notes and the known texts. target: the row of the adversary
            table, if any.
        fragment: whether it is a piece of the note; then the attacker searches for the released
            note of each piece, otherwise for the person of each released note.
    """

    known: str
    sides: LinkageSides = field(repr=False)
    fragment: bool = False
    target: Target | None = None

    def findings(
        self, assets: Assets, rng: Generator, *, top: int = 10, each: bool = False
    ) -> list[Finding]:
        """Return the findings of every attacker, who combines their matchers; with `each` also of
        each matcher.
        """
        found: list[Finding] = []
        scores: dict[str, Doubles] = {}
        for attacker, added in self._attackers(assets):
            scores |= added
            if each:
                found += [
                    one
                    for name, scored in added.items()
                    for one in self._linked(name, scored).findings(rng, top=top)
                ]
            scored = self.combined(attacker, list(scores.values()), rng).findings(rng, top=top)
            found += [self._with_cell(attacker, one) for one in scored]
        if self.target in SHAPED:
            # The same whatever the words are: a generator of its own.
            linked = self._linked(SHAPE, by_shape(self.sides))
            share = linked.findings(np.random.default_rng(1), top=top)[0]
            found.append(replace(share, measure="attack.linkage_shape"))
        return [
            *found,
            *([unprotected(self.unprotected(rng))] if self.fragment else []),
        ]

    def _with_cell(self, attacker: str, finding: Finding) -> Finding:
        """Return the finding on the share of notes linked with its cell of the adversary table."""
        if self.target is None or finding.measure != "attack.linkage":
            return finding
        is_whole = self.target == "note by its whole text"
        return tagged(finding, _HOLDINGS[attacker], self.target, gated=False if is_whole else None)

    def combined(self, attacker: str, scores: Sequence[Doubles], rng: Generator) -> Linked:
        """Combine all matchers of an attacker."""
        linked = self._linked(attacker, scores[0])
        oriented = [self._linked(attacker, one).scores for one in scores]
        return replace(linked, scores=combined(oriented, linked.truth, linked.people, rng))

    def _linked(self, attacker: str, scores: Doubles) -> Linked:
        return Linked(
            scores=scores.T if self.fragment else scores,
            truth=self.sides.truth,
            people=self.sides.people,
            attacker=attacker,
            known=self.known,
            left_out=self.sides.left_out,
            rarest=self.sides.rarest,
        )

    def unprotected(self, rng: Generator) -> Linked:
        """Return the first attacker's scores if the known texts were released unchanged."""
        plain = replace(self.sides, released=[self.sides.whole[j] for j in self.sides.truth])
        scores = list(_plain_matchers(plain, fragment=self.fragment).values())
        return replace(self, sides=plain).combined(WITHOUT, scores, rng)

    def _attackers(self, assets: Assets) -> Iterator[tuple[str, Mapping[str, Doubles]]]:
        """Yield each attacker and the matchers they have in addition to those of the previous
        one.
        """
        yield WITHOUT, _plain_matchers(self.sides, fragment=self.fragment)
        if assets.own is not None:
            yield OWN, self._by_shadow(assets.own)
        if assets.channel is not None:
            added = (
                {"mean vector": mean_vector(self.sides, assets.vectors)} if assets.vectors else {}
            )
            yield WITH, {**self._by_channel(assets.channel), **added}

    def _by_shadow(self, own: Own) -> dict[str, Doubles]:
        scores = {"mean of own vectors": mean_vector(self.sides, own.vectors)}
        for number, channel in enumerate(own.channels, 1):
            scores |= {
                f"own {name} {number}": one for name, one in self._by_channel(channel).items()
            }
        return scores

    def _by_channel(self, channel: Channel) -> dict[str, Doubles]:
        shares = FRAGMENT_SHARES if self.fragment else SHARES
        if channel.in_context:
            return dict(matchers_in_context(self.sides, channel, shares, fragment=self.fragment))
        likelihood = Likelihood.of(self.sides, channel)
        scores = {
            "channel": likelihood.mixture(shares),
            "channel, each output once": likelihood.mixture(shares, once=True),
        }
        if self.fragment:
            scores["channel, all of its words"] = likelihood.covered()
            scores["channel, words in order"] = in_order(self.sides, channel)
        return scores


def _plain_matchers(sides: LinkageSides, *, fragment: bool) -> dict[str, Doubles]:
    """Return the matchers that need no channel."""
    found = {
        "words": tfidf(sides),
        "word pairs": tfidf(sides, pairs=True),
        "BM25": bm25(sides, known_as_query=fragment),
    }
    return found if fragment else {**found, "length and layout": length(sides)}


__all__ = ["Linkage", "LinkageSides", "Own", "View", "other_notes", "paired"]
