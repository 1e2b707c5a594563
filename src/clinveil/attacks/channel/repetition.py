"""Token inversion from repeats: what an attacker reads who knows that m outputs belong to one hidden word.

They name the word with the largest pi(x) C(y1|x) ... C(ym|x). Which m places give m draws depends on the memo: with
`occurrence` any m places, with `note` m notes, with `patient` the notes of m patients (who share a family's, a
clinician's or a town's name), and with `corpus` only m releases of the same notes. With `rare` it is patients for rare
words and places for all. What repeats within the memo's own scope tell is their number: `_patient_counts.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._inputs import (
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
    sampled_words,
)
from clinveil.channel.channel import Channel
from clinveil.channel.policy import Scope
from clinveil.core.finding import Detail, Finding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.core.words import words_beside
from clinveil.corpus.corpus import Corpus
from clinveil.stats import ratio, share_by_patient, share_method, wilson
from clinveil.stats.findings import unmeasured

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
    """How many words are read back from several draws that hide one word, and how often notes give them."""

    needs = frozenset({"channel", "counts"})
    words = words_beside(__file__)
    on_release = True
    order = 400
    draws: int | None = flag(None, "Simulated words for each number of repeats (default: 5,000, fewer for N > 14).")
    rare: int = flag(RARE, "Words of fewer occurrences are rare.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """With the source notes also how often they repeat a word."""
        channel, known, unknown = channel_and_counts(context)
        how: dict[str, Any] = {"draws": self.draws or _affordable(channel), "rare": self.rare}
        found = repeated(channel, known, frequencies(unknown), rng=rng, **how)
        return found + (repeats_in_notes(context.original, rng) if context.original is not None else [])


def _affordable(channel: Channel) -> int:
    """An interval of about a point either way; candidates of an output grow with N, and so does the time."""
    return max(500, 5000 * 14 // max(14, int(np.diff(channel.indptr)[:-1].max(initial=1))))


@dataclass(frozen=True)
class Cases:
    """Hidden words and their draws: `hidden` (n,) rows, `seen` (n, m) outputs, `weight` (n,) summing to 1."""

    hidden: Ints
    seen: Ints
    weight: Doubles
    exact: bool


@dataclass(frozen=True)
class Guesser:
    """The best context-free guesser, from several outputs, of a word that is known to be of a band."""

    band: Band

    @cached_property
    def _entries(self) -> tuple[Ints, Doubles]:
        """The channel's entries by row * n_words + output, sorted, and their logarithms."""
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

    def guess(self, seen: Ints) -> Ints:
        """(n,) the row named for each line of outputs, shape (n, m), whose order tells nothing."""
        lines, place = np.unique(np.sort(seen, axis=1), axis=0, return_inverse=True)
        chunks = np.array_split(lines, max(1, -(-len(lines) // _CHUNK)))
        return np.concatenate([self._guess(chunk) for chunk in chunks])[place.reshape(-1)]

    def _guess(self, seen: Ints) -> Ints:
        joint = self.band.posterior.joint
        lengths = np.diff(joint.indptr)
        # The output with the fewest possible inputs first: few candidates are left to look up.
        seen = np.take_along_axis(seen, np.argsort(lengths[seen], axis=1, kind="stable"), axis=1)
        case = np.repeat(np.arange(len(seen)), lengths[seen[:, 0]])
        starts = np.repeat(joint.indptr[seen[:, 0]], lengths[seen[:, 0]])
        first = np.searchsorted(case, np.arange(len(seen)))
        rows = joint.indices[starts + np.arange(case.size) - first[case]].astype(np.int64)
        score = self._prior[rows]
        for column in range(seen.shape[1]):
            score = score + self._log_likelihood(rows, seen[case, column])
            alive = np.isfinite(score)
            case, rows, score = case[alive], rows[alive], score[alive]
        order = np.lexsort((rows, -score, case))
        _, best = np.unique(case[order], return_index=True)
        return np.asarray(rows[order][best])


def _enumerate(band: Band, m: int) -> Cases | None:
    """Every hidden word with every line of m outputs, or None where these are too many."""
    channel = band.channel
    hidden = np.flatnonzero(band.mass > 0)
    support = np.diff(channel.indptr)[hidden].astype(np.float64)
    if (support**m).sum() > EXACT_CASES:
        return None
    seen = [np.zeros((0, m), dtype=np.int64)]
    weights, rows = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for row in hidden.tolist():
        outputs, chances = channel.row(row)
        lines = np.indices((len(outputs),) * m).reshape(m, -1).T
        seen.append(outputs[lines].astype(np.int64))
        weights.append(chances[lines].prod(axis=1) * band.mass[row] / band.mass.sum())
        rows.append(np.full(len(lines), row, dtype=np.int64))
    return Cases(np.concatenate(rows), np.concatenate(seen), np.concatenate(weights), exact=True)


def _draw(band: Band, m: int, draws: int, rng: Generator) -> Cases:
    """Hidden words by their mass, each with m independent outputs."""
    hidden = rng.choice(band.mass.size, size=draws, p=band.mass / band.mass.sum())
    seen = drawn_outputs(band.channel, hidden, m, rng)
    return Cases(hidden, seen, np.full(draws, 1 / draws), exact=False)


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
    """The share of words recovered from m draws that the attacker knows to hide one word, all and rare, for each m.

    Exact by enumeration where there are few cases, else `draws` simulated words with a Wilson interval. The m draws
    stand in m places, notes or patients, by the memo (`draws_stand_in`); of the rare words the guesser names none but
    rare ones.

    Args and errors: as in `inversion`.
    Source: obfuscation threat model, attack A5; posterior over independent draws.
    """
    inputs = Inputs(channel, counts, unknown)
    findings = []
    for stratum, band in {"all": inputs.all, f"below {rare}": inputs.below(rare)}.items():
        detail: Detail = {"scope": channel.policy.scope, "stratum": stratum}
        if not band.tokens:
            findings.append(unmeasured(REPEATED, NO_SUCH_WORD, detail=detail, source=SOURCE, unit="tokens"))
            continue
        guesser = Guesser(band)
        findings += [_finding(guesser, m, detail, draws, rng) for m in repeats]
    return findings


def _finding(guesser: Guesser, m: int, detail: Detail, draws: int, rng: Generator) -> Finding:
    band = guesser.band
    cases = _enumerate(band, m) or _draw(band, m, draws, rng)
    named = guesser.guess(cases.seen)
    # A right guess of the unknown row wins only the share that its most frequent word has.
    credit = np.divide(band.won, band.mass, out=np.zeros_like(band.won), where=band.mass > 0)
    share = float((cases.weight * (named == cases.hidden) * credit[cases.hidden]).sum())
    shuffled = float((cases.weight * band.won[named]).sum() / band.mass.sum())
    low, high = (share, share) if cases.exact else wilson(round(share * draws), draws)
    method = EXACT if cases.exact else f"Wilson 95 %, {draws} simulated words"
    about: Detail = {"repeats": m, "draws": m, "draws_stand_in": _apart(band.channel.policy.scope, detail), **detail}
    told: dict[str, Any] = {"source": SOURCE, "detail": about, "method": method, **GUESSING}
    n, beside = band.tokens if cases.exact else draws, (band.prior_vulnerability, shuffled)
    return Finding(REPEATED, share, n, "lower", low, high, *beside, **told)


def _apart(scope: Scope, detail: Detail) -> str:
    """What m draws of one word lie apart."""
    return APART["patient" if scope == "rare" and detail["stratum"] != "all" else scope]


def repeats_in_notes(corpus: Corpus, rng: Generator, *, patients: int = 5000) -> list[Finding]:
    """How often a patient's notes repeat a word: median, 90th percentile, and the share of pairs with m >= 3.

    Streams; memory is bounded by a uniform sample of at most `patients` patients (said in the detail).
    """
    sample = sampled_words(corpus, patients, rng)
    times = [np.fromiter(counter.values(), dtype=np.int64) for counter in sample.values.values()]
    pooled = np.concatenate([np.zeros(0, dtype=np.int64), *times])
    unit = "pairs of patient and word"
    detail: dict[str, Any] = {"patients": len(times), "sampled": sample.left_out, "at_least": 3}
    if not pooled.size:
        return [unmeasured("attack.repeats_in_notes", "no word in the notes", better=None, detail=detail, unit=unit)]
    by_patient = np.array([[(t >= 3).sum(), t.size] for t in times])
    low, high = share_by_patient(by_patient)
    detail |= {
        "median": float(np.median(pooled)),
        "p90": float(np.quantile(pooled, 0.9)),
        "most": int(pooled.max()),
        "tokens_share": float(pooled[pooled >= 3].sum() / pooled.sum()),
    }
    name, share, how = "attack.repeats_in_notes", ratio(by_patient), share_method(by_patient, "patients")
    return [Finding(name, share, int(pooled.size), "lower", low, high, detail=detail, unit=unit, method=how)]
