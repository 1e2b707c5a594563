"""Paper B's attack on names: the nearest pairs of name tokens, and how many of them belong to one person.

The attacker has the vectors and knows which words are name tokens. They sort all pairs by distance and take the first K
for names. Three further questions are measured:

- Can the attacker identify the name tokens in the vocabulary, as the paper assumes? Step one takes words in census or
  other name lists that are not ordinary or clinical words; eponyms stay, because nearly all of them are surnames. Step
  two adds words with at least half of their ten nearest words in these lists. Unlisted names are found by step two,
  which is why removing listed names from vectors is not sufficient.
- How precise is the attack on the words that the attacker identified? Names of clinicians and relatives count as wrong,
  so the precision is a lower bound.
- What does replacement of names achieve? (`leaked_names`)

Source: JMIR 2020;22(7):e18055, experiment 1 and Table 1; the assumption: introduction; replacement: conclusion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.vectors._closest_pairs import METRICS, Metric
from clinveil.attacks.vectors._name_pairs import DRAWS, Name, NameRanking, NameTokens, rank_names
from clinveil.attacks.vectors._name_scores import SOURCE, K, attack_names, leaked_names, list_lengths
from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.types import Mask, Say
from clinveil.core.words import words_beside
from clinveil.stats.findings import proportion, unmeasured
from clinveil.vectors.search import Space, exact_search
from clinveil.vectors.table import Vectors

NEIGHBOURS, SHARE = 10, 0.5
ASSUMED = "JMIR 2020;22(7):e18055, introduction: the assumption that name tokens are known"
_IDENTIFIED = {"attack.names": "attack.names_picked", "attack.names_patients": "attack.names_picked_patients"}


@attacks.register("names")
class Names(Attack):
    """Reconstruct full names from the nearest pairs of name tokens in word vectors (paper B, experiment 1)."""

    needs = frozenset({"vectors", "names"})
    words = words_beside(__file__)
    metric: tuple[str, ...] = flag(("cosine",), "cosine, cityblock or euclidean; repeatable.")
    k: int = flag(K, "Number of pairs that the attacker takes for names (paper B: 600).", ge=1)
    draws: int = flag(DRAWS, "Re-pairings of the true names, for the control and the P.", ge=19)
    find_names: bool = flag(False, "Also measure an attacker who must identify the name tokens.")
    surrogates: Path | None = flag(None, "File with surrogate names among the real ones (surrogates.parquet).")

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack on all models with the same re-pairings; P of the best of several corrects for the choice."""
        surrogates = read_full_names(self.surrogates) if self.surrogates else ()
        more: dict[str, Any] = {"surrogates": surrogates, "threads": context.workers, "say": context.say}
        return self.on(context.vectors or (), context.names or (), rng, **more)

    def on(
        self,
        models: Iterable[Vectors | tuple[str, Vectors]],
        people: Iterable[Name],
        rng: Generator,
        *,
        surrogates: Iterable[Name] = (),
        threads: int = 2,
        say: Say = lambda line: None,
        skip: Callable[[str, InputError], None] | None = None,
    ) -> list[Finding]:
        """Return all findings on one or several models.

        Args:
            models: with an iterator, one at a time is in memory; each may be preceded by a label.
            people: the true full names, first name first; secret.
            surrogates: names among the real ones in the notes.
            say: receives a line if tokens have no vector. skip: receives the label of a model with too few names.

        Raises:
            InputError: no true pair, or (without `skip`) a model with fewer than two name tokens. UsageError: an
            unknown
                metric.
        """
        metrics, others = _metrics(self.metric), list(surrogates)
        tokens = NameTokens(people, also=others)
        longest = max(list_lengths(tokens, self.k).values())
        rankings: list[NameRanking] = []
        picked: list[Finding] = []
        for label, model in _labelled(models):
            try:
                rankings += [
                    rank_names(model, tokens, metric, longest, threads=threads, label=label) for metric in metrics
                ]
            except InputError as error:
                if skip is None:
                    raise
                skip(label, error)
                continue
            _say_left_out(model, tokens, say)
            if self.find_names:
                picked += self._picked(model, tokens, metrics, rng, threads, label)
        if skip is not None and not rankings:
            return []
        found = attack_names(tokens, rankings, rng, k=self.k, draws=self.draws) + picked
        return found + [leaked_names(tokens, r, self.k, rng, draws=self.draws) for r in rankings if others]

    def _picked(
        self, model: Vectors, names: NameTokens, metrics: list[Metric], rng: Generator, threads: int, label: str
    ) -> Iterator[Finding]:
        """Yield how well name tokens are identified in the vocabulary, and the attack on these tokens."""
        picked = pick_names(model, threads=threads)
        yield from score_picked(model, picked, names, rng, threads=threads)
        for metric in metrics:
            if len(picked.words) < 2:
                about: dict[str, Any] = {"detail": {"model": label, "metric": metric, "k": self.k}, "source": SOURCE}
                why = f"only {len(picked.words)} words were taken for names"
                yield from (unmeasured(measure, why, **about) for measure in _IDENTIFIED.values())
                continue
            tokens = names.with_others([(word,) for word in sorted(picked.words)])
            how: dict[str, Any] = {"candidates": picked.words, "threads": threads, "label": label}
            ranking = rank_names(model, tokens, metric, self.k, **how)
            found = attack_names(tokens, [ranking], rng, k=self.k, curve=(), draws=self.draws)
            yield from (replace(f, measure=_IDENTIFIED[f.measure]) for f in found if f.measure in _IDENTIFIED)


def read_full_names(path: Path) -> list[tuple[str, ...]]:
    """Read full names; from a patients file one per patient, so that namesakes stay separate."""
    from clinveil.corpus.people import read_names, read_patients

    if path.suffix == ".parquet":
        return [patient.name for patient in read_patients(path).values()]
    return read_names(path)


def paper_k(people: Iterable[Name]) -> int:
    """Return the paper's 600 pairs, or the number of true pairs if smaller; at least 1."""
    return min(K, max(1, len(NameTokens(people).true_pairs)))


def _metrics(requested: Sequence[str]) -> list[Metric]:
    """Return the requested metrics, without repetitions."""
    if unknown := set(requested) - set(METRICS):
        raise UsageError(f"unknown metric {min(unknown)!r}", hint="one of " + ", ".join(METRICS))
    return [metric for metric in METRICS if metric in requested]


def _labelled(models: Iterable[Vectors | tuple[str, Vectors]]) -> Iterator[tuple[str, Vectors]]:
    """Yield each model with its label: number and training settings."""
    for number, model in enumerate(models, 1):
        if isinstance(model, Vectors):
            parts = [f"{key} {model.meta[key]}" for key in ("window", "dim") if key in model.meta]
            yield " ".join([f"#{number}", str(model.meta.get("algorithm", "imported")), *parts]), model
        else:
            yield model


def _say_left_out(model: Vectors, names: NameTokens, say: Say) -> None:
    """Report name tokens without a vector and names of one token; both are also counted in the findings."""
    missing = sum(form not in model.ids for form in names.forms)
    if missing:
        say(f"{missing} of {len(names.forms)} name tokens have no vector: they cannot be found and lower the figures")
    if names.lone:
        say(f"{names.lone} of {names.n_names} names have only one token, so there is no pair to find")


@dataclass(frozen=True)
class PickedNames:
    """Words of a vocabulary that were taken for names.

    Attributes:
        listed: (n_words,) bool, by the lists. near: (n_words,) bool, by the lists or by proximity.
        words: the words of `near`.
    """

    listed: Mask = field(repr=False)
    near: Mask = field(repr=False)
    words: frozenset[str] = field(repr=False)


def listed_names(words: Sequence[str]) -> Mask:
    """Return which words are in a list of names and are not ordinary words, (n_words,)."""
    from clinveil.lexicons.ambiguity import is_name  # loads its lists

    return np.array([len(word) > 1 and is_name(word) for word in words], dtype=bool)


def near_names(vectors: Vectors, listed: Mask, *, threads: int = 2) -> Mask:
    """Return which words are listed, or have listed names as at least half of their ten nearest words, (n_words,)."""
    k = min(NEIGHBOURS, len(vectors) - 1)
    if k < 1 or not listed.any():
        return listed.copy()
    rows = np.arange(len(vectors), dtype=np.int32)
    nearest = exact_search(Space.of(vectors.matrix), rows, rows, k, threads=threads)[0]
    return np.asarray(listed | (listed[nearest].mean(axis=1) >= SHARE))


def pick_names(vectors: Vectors, *, threads: int = 2) -> PickedNames:
    """Identify the name tokens in a vocabulary, without the truth."""
    listed = listed_names(vectors.words)
    near = near_names(vectors, listed, threads=threads)
    return PickedNames(listed, near, frozenset(vectors.words[row] for row in np.flatnonzero(near).tolist()))


def score_picked(
    vectors: Vectors, found: PickedNames, names: NameTokens, rng: Generator, *, threads: int = 2
) -> list[Finding]:
    """Return recall and precision of both steps against the true name tokens with vectors.

    Names of clinicians and relatives count as wrong, because they are not patients' names; precision is therefore a
    lower bound. Chance is the same number of random words. The control runs the same steps from random words in place
    of the lists.
    """
    forms = set(names.forms[token] for token in names.tokens.tolist())
    true = np.array([word in forms for word in vectors.words], dtype=bool)
    listed = np.zeros(len(vectors), dtype=bool)
    listed[rng.choice(len(vectors), size=int(found.listed.sum()), replace=False)] = True
    control = near_names(vectors, listed, threads=threads)
    steps = {"listed": (found.listed, listed), "near": (found.near, control)}
    return [
        finding
        for step, (picked, placebo) in steps.items()
        for finding in (_share("recall", step, true, picked, placebo), _share("precision", step, picked, true, placebo))
    ]


def _share(statistic: str, step: str, of: Mask, within: Mask, placebo: Mask) -> Finding:
    """Return the share of `of` that is `within`; the placebo replaces the identified words."""
    n, overlap = int(of.sum()), int((of & within).sum())
    recall = statistic == "recall"
    unit = "name tokens" if recall else "identified words"
    detail: dict[str, float | str] = {"step": step, "vocabulary": len(of)}
    measure = f"attack.find_names_{statistic}_{step}"
    if not n:
        why = "no name token has a vector" if recall else "no word was taken for a name"
        return unmeasured(measure, why, detail=detail, source=ASSUMED, unit=unit)
    reference: dict[str, Any] = {"chance": float(within.mean()), "source": ASSUMED, "detail": detail, "unit": unit}
    top, bottom = (placebo & of, of) if recall else (placebo & within, placebo)
    if bottom.any():
        description = "the same steps from the same number of random words in place of the lists"
        reference |= {"control": float(top.sum() / bottom.sum()), "control_is": description, "control_kind": "negative"}
    return proportion(
        measure, overlap, n, over="tokens", chance_is="the same number of random words of the vocabulary", **reference
    )


__all__ = ["METRICS", "Metric", "Names", "paper_k", "read_full_names"]
