"""Token inversion from repeats: words recovered from m outputs that are known to belong to one
source word.

The attacker names the word with the largest pi(x) C(y1|x) ... C(ym|x). The substitution scope
decides where m
independent draws occur: with `occurrence` at any m positions, with `note` in m notes, with
`patient` in the notes of m patients (who share the name of a family, a clinician or a town), and
with `corpus` only in m releases of the same notes. With `rare`, rare words need m patients and all
words m positions. The number of repeats within a scope also
carries information: see `inversion.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel.inversion import (
    EXACT,
    GUESSING,
    NO_COUNTS,
    NO_SUCH_WORD,
    RARE,
    Band,
    Inputs,
    channel_and_counts,
    drawn_outputs,
    frequencies,
)
from clinveil.channel.channel import Channel
from clinveil.channel.policy import Scope
from clinveil.core.finding import Detail, Finding
from clinveil.core.types import Doubles, Ints
from clinveil.stats.findings import unmeasured
from clinveil.stats.intervals import wilson

REPEATS = (1, 2, 3, 5, 8)
APART: dict[Scope, str] = {
    "occurrence": "places",
    "note": "notes",
    "patient": "patients",
    "corpus": "releases",
    "rare": "places",
}
DRAWS = 20_000
EXACT_CASES = 30_000
_CHUNK = 500
REPEATED = "attack.inversion_repeated"
SOURCE = "joint posterior over m draws (averaging attack); attack A5 of the threat model"


@attacks.register("repetition")
class Repetition(Attack):
    """Measure how many words are recovered from several draws of one source word."""

    needs = frozenset({"channel", "counts"})
    on_release = True
    order = 400

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack; with an interval of about one percentage point, as runtime grows with
        N.
        """
        channel, known, unknown = channel_and_counts(context)
        draws = max(500, 5000 * 14 // max(14, int(np.diff(channel.indptr)[:-1].max(initial=1))))
        return repeated(channel, known, frequencies(unknown), rng=rng, draws=draws)


@dataclass(frozen=True)
class Cases:
    """Hidden words and their draws: `hidden` (n,) rows, `observed` (n, m) outputs, `weight` (n,)
    summing to 1.
    """

    hidden: Ints
    observed: Ints
    weight: Doubles
    exact: bool


@dataclass(frozen=True)
class Guesser:
    """The best context-free guesser, from several outputs, of a word that is known to belong to a
    band.
    """

    band: Band

    @cached_property
    def _entries(self) -> tuple[Ints, Doubles]:
        """Return the channel's entries as row * n_words + output, sorted, and their logarithms."""
        matrix = self.band.channel.matrix()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return rows * np.int64(matrix.shape[1]) + matrix.indices, np.log(matrix.data)

    @cached_property
    def _prior(self) -> Doubles:
        return np.log(np.maximum(self.band.won, 1e-300))

    def _log_likelihood(self, rows: Ints, outputs: Ints) -> Doubles:
        entries, logs = self._entries
        keys = rows * len(self.band.channel.words) + outputs
        places = np.minimum(np.searchsorted(entries, keys), entries.size - 1)
        return np.where(entries[places] == keys, logs[places], -np.inf)

    def guess(self, observed: Ints) -> Ints:
        """Return the row named for each set of outputs, (n,), from shape (n, m); their order is
        irrelevant.
        """
        lines, place = np.unique(np.sort(observed, axis=1), axis=0, return_inverse=True)
        chunks = np.array_split(lines, max(1, -(-len(lines) // _CHUNK)))
        return np.concatenate([self._guess(chunk) for chunk in chunks])[place.reshape(-1)]

    def _guess(self, observed: Ints) -> Ints:
        joint = self.band.posterior.joint
        lengths = np.diff(joint.indptr)
        # The output with the fewest possible inputs first, to reduce the candidates.
        observed = np.take_along_axis(
            observed, np.argsort(lengths[observed], axis=1, kind="stable"), axis=1
        )
        case = np.repeat(np.arange(len(observed)), lengths[observed[:, 0]])
        starts = np.repeat(joint.indptr[observed[:, 0]], lengths[observed[:, 0]])
        first = np.searchsorted(case, np.arange(len(observed)))
        rows = joint.indices[starts + np.arange(case.size) - first[case]].astype(np.int64)
        score = self._prior[rows]
        for column in range(observed.shape[1]):
            score = score + self._log_likelihood(rows, observed[case, column])
            alive = np.isfinite(score)
            case = case[alive]
            rows = rows[alive]
            score = score[alive]
        order = np.lexsort((rows, -score, case))
        _, best = np.unique(case[order], return_index=True)
        return np.asarray(rows[order][best])


def _enumerate(band: Band, m: int) -> Cases | None:
    """Return every hidden word with every combination of m outputs, or None if these are too
    many.
    """
    channel = band.channel
    hidden = np.flatnonzero(band.mass > 0)
    support = np.diff(channel.indptr)[hidden].astype(np.float64)
    if (support**m).sum() > EXACT_CASES:
        return None
    observed = [np.zeros((0, m), dtype=np.int64)]
    weights = [np.zeros(0)]
    rows = [np.zeros(0, dtype=np.int64)]
    for row in hidden.tolist():
        outputs, chances = channel.row(row)
        lines = np.indices((len(outputs),) * m).reshape(m, -1).T
        observed.append(outputs[lines].astype(np.int64))
        weights.append(chances[lines].prod(axis=1) * band.mass[row] / band.mass.sum())
        rows.append(np.full(len(lines), row, dtype=np.int64))
    return Cases(
        np.concatenate(rows), np.concatenate(observed), np.concatenate(weights), exact=True
    )


def _draw(band: Band, m: int, draws: int, rng: Generator) -> Cases:
    """Draw hidden words by their frequency, each with m independent outputs."""
    hidden = rng.choice(band.mass.size, size=draws, p=band.mass / band.mass.sum())
    observed = drawn_outputs(band.channel, hidden, m, rng)
    return Cases(hidden, observed, np.full(draws, 1 / draws), exact=False)


def repeated(
    channel: Channel,
    counts: Ints,
    unknown: Ints = NO_COUNTS,
    *,
    rng: Generator,
    repeats: Sequence[int] = REPEATS,
    draws: int = DRAWS,
    rare: int = RARE,
) -> list[Finding]:
    """Measure the share of words recovered from m draws that are known to belong to one word, all
    and rare, per m.

    Exact by enumeration if there are few cases, else `draws` simulated words with a Wilson
    interval. `draws_stand_in` records the unit (positions, notes, patients) that gives m
    independent draws. For rare words the guesser names only rare words.

    Args and errors: as in `inversion`.
    Source: obfuscation threat model, attack A5; posterior over independent draws.
    """
    inputs = Inputs(channel, counts, unknown)
    findings = []
    for stratum, band in {"all": inputs.all, f"below {rare}": inputs.below(rare)}.items():
        detail: Detail = {"scope": channel.policy.scope, "stratum": stratum}
        if not band.tokens:
            findings.append(
                unmeasured(REPEATED, NO_SUCH_WORD, detail=detail, source=SOURCE, unit="tokens")
            )
            continue
        guesser = Guesser(band)
        findings += [_finding(guesser, m, detail, draws, rng) for m in repeats]
    return findings


def _finding(guesser: Guesser, m: int, detail: Detail, draws: int, rng: Generator) -> Finding:
    band = guesser.band
    cases = _enumerate(band, m) or _draw(band, m, draws, rng)
    named = guesser.guess(cases.observed)
    # A right guess of the unknown row counts only the share of its most frequent word.
    credit = np.divide(band.won, band.mass, out=np.zeros_like(band.won), where=band.mass > 0)
    share = float((cases.weight * (named == cases.hidden) * credit[cases.hidden]).sum())
    shuffled = float((cases.weight * band.won[named]).sum() / band.mass.sum())
    low, high = (share, share) if cases.exact else wilson(round(share * draws), draws)
    method = EXACT if cases.exact else f"Wilson 95 %, {draws} simulated words"
    # The unit that separates independent draws of one word.
    scope = band.channel.policy.scope
    scope = "patient" if scope == "rare" and detail["stratum"] != "all" else scope
    more: Detail = {"repeats": m, "draws": m, "draws_stand_in": APART[scope], **detail}
    about: dict[str, Any] = {"source": SOURCE, "detail": more, "method": method, **GUESSING}
    n = band.tokens if cases.exact else draws
    reference = (band.prior_vulnerability, shuffled)
    return Finding(REPEATED, share, n, "lower", low, high, *reference, **about)
