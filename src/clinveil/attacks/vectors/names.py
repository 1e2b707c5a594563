"""Paper B's attack on names: the nearest pairs of name tokens, and how many of them belong to one
person.

The attacker has the vectors and knows which words are name tokens. They sort all pairs by distance
and take the first K for names. With surrogates, `leaked_names` measures what replacement of names
achieves.

Source: JMIR 2020;22(7):e18055, experiment 1 and Table 1; replacement: conclusion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context
from clinveil.attacks.vectors._name_pairs import (
    DRAWS,
    METRICS,
    Name,
    NameRanking,
    NameTokens,
    rank_names,
)
from clinveil.attacks.vectors._name_scores import K, attack_names, leaked_names
from clinveil.core import Finding, InputError, Say, UsageError, setting
from clinveil.corpus import read_names
from clinveil.vectors import Vectors


class Names(Attack):
    """Reconstruct full names from the nearest pairs of name tokens in word vectors (paper B,
    experiment 1).
    """

    needs = frozenset({"vectors", "names"})
    metric: tuple[str, ...] = setting(("cosine",), "cosine, cityblock or euclidean; repeatable.")
    k: int = setting(K, "Number of pairs that the attacker takes for names (paper B: 600).", ge=1)
    draws: int = setting(DRAWS, "Re-pairings of the true names, for the control and the P.", ge=19)
    surrogates: Path | None = setting(
        None,
        "File with surrogate names among the real ones (surrogates.parquet).",
        secret="path",
    )

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack on all models with the same re-pairings; P of the best of several corrects
        for the choice.
        """
        surrogates = read_names(self.surrogates) if self.surrogates else ()
        return self.on(
            context.vectors or (), context.names or (), rng, surrogates=surrogates, say=context.say
        )

    def on(
        self,
        models: Iterable[Vectors | tuple[str, Vectors]],
        people: Iterable[Name],
        rng: Generator,
        *,
        surrogates: Iterable[Name] = (),
        say: Say = lambda line: None,
        skip: Callable[[str, InputError], None] | None = None,
    ) -> list[Finding]:
        """Return all findings on one or several models.

        Args:
            models: with an iterator, one at a time is in memory; each may be preceded by a label.
            people: the true full names, first name first; secret.
            surrogates: names among the real ones in the notes.
            say: receives a line if tokens have no vector. skip: receives the label of a model with
                too few names.

        Raises:
            InputError: no true pair, or (without `skip`) a model with fewer than two name tokens.
            UsageError: an unknown metric.
        """
        if unknown := set(self.metric) - set(METRICS):
            raise UsageError(
                f"unknown metric {min(unknown)!r}", hint="one of " + ", ".join(METRICS)
            )
        metrics = [metric for metric in METRICS if metric in self.metric]
        others = list(surrogates)
        tokens = NameTokens(people, also=others)
        rankings: list[NameRanking] = []
        for label, model in _labelled(models):
            try:
                rankings += [
                    rank_names(model, tokens, metric, self.k, label=label) for metric in metrics
                ]
            except InputError as error:
                if skip is None:
                    raise
                skip(label, error)
                continue
            if missing := sum(form not in model.ids for form in tokens.forms):
                why = "they cannot be found and lower the figures"
                say(f"{missing} of {len(tokens.forms)} name tokens have no vector: {why}")
            if tokens.lone:
                say(
                    f"{tokens.lone} of {tokens.n_names} names have only one token, so there is no"
                    " pair to find"
                )
        if skip is not None and not rankings:
            return []
        found = attack_names(tokens, rankings, rng, k=self.k, draws=self.draws)
        return found + [
            leaked_names(tokens, r, self.k, rng, draws=self.draws) for r in rankings if others
        ]


def paper_k(people: Iterable[Name]) -> int:
    """Return the paper's 600 pairs, or the number of true pairs if smaller; at least 1."""
    return min(K, max(1, len(NameTokens(people).true_pairs)))


def _labelled(models: Iterable[Vectors | tuple[str, Vectors]]) -> Iterator[tuple[str, Vectors]]:
    """Yield each model with its label: number and training settings."""
    for number, model in enumerate(models, 1):
        if isinstance(model, Vectors):
            parts = [f"{key} {model.meta[key]}" for key in ("window", "dim") if key in model.meta]
            yield (
                " ".join([f"#{number}", str(model.meta.get("algorithm", "imported")), *parts]),
                model,
            )
        else:
            yield model
