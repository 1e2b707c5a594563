"""How well a language model predicts notes: perplexity as in paper C, and bits a character."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator, default_rng

from clinveil.errors import InputError
from clinveil.finding import Finding
from clinveil.lm.model import Fit, LanguageModel
from clinveil.stats import bootstrap_clusters

SOURCE = "paper C, Table 2 (perplexity); bits a character are ours"


def perplexity_findings(
    model: LanguageModel, fit: Fit, of: str, rng: Generator | None = None, *, control: Fit | None = None
) -> list[Finding]:
    """`utility.perplexity` and `utility.bits_per_character` of notes, bootstrap over notes.

    Args:
        of: which notes, for people ("valid", "held out"). control: how a unigram of the same training fits them.

    Raises:
        InputError: the perplexity is no number.
    """
    if not np.isfinite(fit.perplexity):
        raise InputError("the model's perplexity is no number", remedy="train it again, with a smaller --rate")
    rng = default_rng(0) if rng is None else rng
    rows = np.stack([fit.totals, fit.tokens, fit.characters], axis=1)
    detail: dict[str, str | int] = {
        "model": model.kind,
        "of": of,
        "vocabulary": model.vocabulary.kind,
        "size": model.vocabulary.size,
    }
    detail |= {"tokens": int(fit.tokens.sum()), "unit": "notes", "interval": "bootstrap over notes, 95 %"}
    if control is not None:
        detail["control_is"] = "a unigram of the same notes"
    found = []
    for name, value, unit in (("perplexity", fit.perplexity, 1), ("bits_per_character", fit.bits_per_character, 2)):
        low, high = bootstrap_clusters(rows, lambda part, unit=unit: _rate(part, unit), rng)  # type: ignore[misc]
        other = None if control is None else getattr(control, name)
        found.append(Finding(f"utility.{name}", value, len(rows), "lower", low, high, None, other, SOURCE, detail))
    return found


def _rate(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]], unit: int) -> float:
    """Perplexity (unit 1) or bits a character (unit 2)."""
    mean = -rows[:, 0].sum() / rows[:, unit].sum()
    return float(np.exp(mean)) if unit == 1 else float(mean / np.log(2))
