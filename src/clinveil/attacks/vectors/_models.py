"""The same attack on several models: under the same draws, told apart by a label, and P adjusted over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import replace

from numpy.random import Generator

from clinveil.core.finding import Finding
from clinveil.stats import holm
from clinveil.vectors.table import Vectors


def each_model(
    models: Sequence[Vectors], rng: Generator, attack: Callable[[Vectors, Generator], Iterable[Finding]]
) -> list[Finding]:
    """The findings on each model from a copy of one generator; of several, each finding's detail names the model."""
    found: list[Finding] = []
    for number, vectors in enumerate(models, 1):
        label = {"model": _label(number, vectors)} if len(models) > 1 else {}
        found += [replace(f, detail={**f.detail, **label}) for f in attack(vectors, deepcopy(rng))]
    return over_models(found)


def _label(number: int, vectors: Vectors) -> str:
    """Which model it is, without its path."""
    meta = vectors.meta
    window = [f"window {meta['window']}"] if "window" in meta else []
    return f"{number}: " + " ".join([str(meta.get("algorithm", "imported")), *window, f"{vectors.dim}d"])


def over_models(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of several models, each P also adjusted by Holm over all models and metrics of its measure.

    The detail `p_over_models` is added where a finding has a `p`, and `models` says over how many.
    """
    families: dict[tuple[str, object], list[int]] = {}
    for place, finding in enumerate(findings):
        if finding.p is not None:
            families.setdefault((finding.measure, finding.detail.get("series")), []).append(place)
    adjusted = list(findings)
    for places in families.values():
        values = holm([findings[place].p or 0.0 for place in places])
        for place, value in zip(places, values.tolist(), strict=True):
            detail = {**findings[place].detail, "p_over_models": value, "models": len(places)}
            adjusted[place] = replace(findings[place], detail=detail)
    return adjusted
