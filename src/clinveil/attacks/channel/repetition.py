"""Token inversion from repeats: what an attacker reads who knows that m outputs belong to one hidden word.

They name the word with the largest pi(x) C(y1|x) ... C(ym|x). Which m places give m draws depends on the memo: with
`occurrence` any m places, with `note` m notes, with `patient` the notes of m patients (who share a family's, a
clinician's or a town's name). What repeats within the memo's own scope tell is their number: `patient_counts.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from clinveil.attacks.channel.inversion import BLIND, EXACT, NO_COUNTS, RARE, SHUFFLED, Inputs, Stratum
from clinveil.channel.channel import Channel
from clinveil.core.finding import Detail, Finding
from clinveil.core.tokens import words
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.sample import KeySample
from clinveil.stats import ratio, share_by_patient, share_method, wilson

Memo = Literal["occurrence", "note", "patient"]
REPEATS = (1, 2, 3, 5, 8)
APART: dict[Memo, str] = {"occurrence": "places", "note": "notes", "patient": "patients"}
DRAWS = 20_000
EXACT_CASES = 30_000
_CHUNK = 500
REPEATED = "attack.inversion_repeated"
SOURCE = "joint posterior over m draws (averaging attack); attack A5 of the threat model"


@dataclass(frozen=True)
class Cases:
    """Hidden words and their draws: `hidden` (n,) rows, `seen` (n, m) outputs, `weight` (n,) summing to 1."""

    hidden: NDArray[np.int64]
    seen: NDArray[np.int64]
    weight: NDArray[np.float64]
    exact: bool


@dataclass(frozen=True)
class Guesser:
    """The best context-free guesser, from several outputs, of a word that is known to be of a stratum."""

    inputs: Inputs
    part: Stratum

    @cached_property
    def joint(self) -> csc_matrix:
        """`Inputs.joint` of the stratum."""
        return self.inputs.joint(self.part)

    @cached_property
    def _entries(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The channel's entries by row * n_words + output, sorted, and their logarithms."""
        matrix = self.inputs.channel.matrix()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return rows * np.int64(matrix.shape[1]) + matrix.indices, np.log(matrix.data)

    @cached_property
    def _prior(self) -> NDArray[np.float64]:
        return np.log(np.maximum(self.part.won, 1e-300))

    def _log_likelihood(self, rows: NDArray[np.int64], outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        entries, logs = self._entries
        keys = rows * len(self.inputs.channel.words) + outputs
        places = np.minimum(np.searchsorted(entries, keys), entries.size - 1)
        return np.where(entries[places] == keys, logs[places], -np.inf)

    def guess(self, seen: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) the row named for each line of outputs, shape (n, m)."""
        chunks = np.array_split(seen, max(1, -(-len(seen) // _CHUNK)))
        return np.concatenate([self._guess(chunk) for chunk in chunks])

    def _guess(self, seen: NDArray[np.int64]) -> NDArray[np.int64]:
        joint = self.joint
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


def _enumerate(inputs: Inputs, part: Stratum, m: int) -> Cases | None:
    """Every hidden word with every line of m outputs, or None where these are too many."""
    channel = inputs.channel
    hidden = np.flatnonzero(part.mass > 0)
    support = np.diff(channel.indptr)[hidden].astype(np.float64)
    if (support**m).sum() > EXACT_CASES:
        return None
    seen = [np.zeros((0, m), dtype=np.int64)]
    weights, rows = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for row in hidden.tolist():
        outputs, chances = channel.row(row)
        lines = np.indices((len(outputs),) * m).reshape(m, -1).T
        seen.append(outputs[lines].astype(np.int64))
        weights.append(chances[lines].prod(axis=1) * part.mass[row] / part.mass.sum())
        rows.append(np.full(len(lines), row, dtype=np.int64))
    return Cases(np.concatenate(rows), np.concatenate(seen), np.concatenate(weights), exact=True)


def _draw(inputs: Inputs, part: Stratum, m: int, draws: int, rng: Generator) -> Cases:
    """Hidden words by their mass, each with m independent outputs."""
    hidden = rng.choice(part.mass.size, size=draws, p=part.mass / part.mass.sum())
    seen = drawn_outputs(inputs.channel, hidden, m, rng)
    return Cases(hidden, seen, np.full(draws, 1 / draws), exact=False)


def drawn_outputs(channel: Channel, rows: NDArray[np.int64], m: int, rng: Generator) -> NDArray[np.int64]:
    """m independent outputs of each of these rows, (n, m); none of them may be empty."""
    ends = np.cumsum(channel.probabilities)
    starts = np.concatenate([[0.0], ends])[channel.indptr]
    low, high = starts[rows][:, None], starts[rows + 1][:, None]
    places = np.searchsorted(ends, low + rng.random((rows.size, m)) * (high - low), side="right")
    places = np.clip(places, channel.indptr[rows][:, None], channel.indptr[rows + 1][:, None] - 1)
    return channel.indices[places].astype(np.int64)


@dataclass(frozen=True)
class _Recovery:
    share: float
    low: float
    high: float
    shuffled: float
    exact: bool


def _recovery(guesser: Guesser, m: int, draws: int, rng: Generator) -> _Recovery:
    part = guesser.part
    cases = _enumerate(guesser.inputs, part, m) or _draw(guesser.inputs, part, m, draws, rng)
    named = guesser.guess(cases.seen)
    # A right guess of the unknown row wins only the share that its most frequent word has.
    credit = np.divide(part.won, part.mass, out=np.zeros_like(part.won), where=part.mass > 0)
    share = float((cases.weight * (named == cases.hidden) * credit[cases.hidden]).sum())
    shuffled = float((cases.weight * part.won[named]).sum() / part.mass.sum())
    low, high = (share, share) if cases.exact else wilson(round(share * draws), draws)
    return _Recovery(share, low, high, shuffled, cases.exact)


def repeated(
    channel: Channel,
    counts: NDArray[np.int64],
    unknown: NDArray[np.int64] = NO_COUNTS,
    *,
    memo: Memo,
    rng: Generator,
    repeats: Sequence[int] = REPEATS,
    draws: int = DRAWS,
    rare: int = RARE,
) -> list[Finding]:
    """The share of words recovered from m draws that the attacker knows to hide one word, all and rare, for each m.

    Exact by enumeration where there are few cases, else `draws` simulated words with a Wilson interval. The m draws
    stand in m places, notes or patients, by the memo (`draws_stand_in`); of the rare words the guesser names none but
    rare ones.

    Args: counts, unknown, rare as in `inversion`.
    Raises: InputError for counts that do not fit the channel.
    Source: obfuscation threat model, attack A5; posterior over independent draws.
    """
    inputs = Inputs(channel, counts, unknown)
    findings = []
    for stratum, part in {"all": inputs.all, f"below {rare}": inputs.below(rare)}.items():
        detail: Detail = {"memo": memo, "stratum": stratum}
        if not part.tokens:
            why: Detail = {**detail, "why": "no such word in the notes"}
            findings.append(Finding(REPEATED, None, 0, "lower", source=SOURCE, detail=why, unit="tokens"))
            continue
        guesser = Guesser(inputs, part)
        findings += [_finding(guesser, m, detail, _recovery(guesser, m, draws, rng), draws) for m in repeats]
    return findings


def _finding(guesser: Guesser, m: int, detail: Detail, seen: _Recovery, draws: int) -> Finding:
    return Finding(
        REPEATED,
        seen.share,
        guesser.part.tokens if seen.exact else draws,
        "lower",
        seen.low,
        seen.high,
        guesser.inputs.unseeing(guesser.part),
        seen.shuffled,
        SOURCE,
        {"repeats": m, "draws": m, "draws_stand_in": APART[detail["memo"]], **detail},  # type: ignore[index]
        unit="tokens",
        method=_how(seen, draws),
        chance_is=BLIND,
        control_is=SHUFFLED,
        control_kind="negative",
    )


def _how(recovery: _Recovery, draws: int) -> str:
    return EXACT if recovery.exact else f"Wilson 95 %, {draws} simulated words"


def repeats_in_notes(corpus: Corpus, rng: Generator, *, patients: int = 5000) -> list[Finding]:
    """How often a patient's notes repeat a word: median, 90th percentile, and the share of pairs with m >= 3.

    Streams; memory is bounded by a uniform sample of at most `patients` patients (said in the detail).
    """
    sample: KeySample[Counter[str]] = KeySample(patients, rng)
    for patient, text in patient_texts(corpus):
        heard = sample.offer(patient, Counter)
        if heard is not None:
            heard.update(words(text))
    times = [np.fromiter(heard.values(), dtype=np.int64) for heard in sample.values.values()]
    pooled = np.concatenate([np.zeros(0, dtype=np.int64), *times])
    unit = "pairs of patient and word"
    detail: dict[str, Any] = {"patients": len(times), "sampled": sample.left_out, "at_least": 3}
    if not pooled.size:
        why = {**detail, "why": "no word in the notes"}
        return [Finding("attack.repeats_in_notes", None, 0, detail=why, unit=unit)]
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


def patient_texts(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Patient and text of every note that has both."""
    for batch in corpus.batches():
        for patient, text in zip(batch["patient_id"].to_pylist(), batch["text"].to_pylist(), strict=True):
            if patient is not None and text is not None:
                yield patient, text
