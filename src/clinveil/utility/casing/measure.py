"""How well a character model of some lines restores the case of others, beside each word's usual casing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.errors import InputError
from clinveil.finding import Finding
from clinveil.neural import device_named, need_torch, seeded
from clinveil.stats import bootstrap_weights
from clinveil.utility.casing import OnLook
from clinveil.utility.casing.characters import Characters
from clinveil.utility.casing.floor import dealt_anew, lowered_lines, restore_usual, usual_casings
from clinveil.utility.casing.lines import Lines
from clinveil.utility.casing.score import GOLD, Counts, count_words, score
from clinveil.utility.casing.settings import CasingSettings

SOURCE = "paper C, section 3.3 (letter-case restoration); character LSTM of Susanto et al. 2016"
DRAWS = 1_000
Metric = Literal["f1", "accuracy"]


def casing(
    parts: tuple[Lines, Lines, Lines],
    rng: Generator,
    settings: CasingSettings | None = None,
    *,
    draws: int = DRAWS,
    threads: int = 1,
    on_look: OnLook | None = None,
) -> list[Finding]:
    """F1 of the words with a capital on the test lines, by the model and by each word's usual casing.

    Args:
        parts: training, dev and test lines, cased.
        threads: of PyTorch; with one, the same seed gives the same bits (unless a time limit ends training).
        on_look: called with (step, epochs, dev loss) at each look at the dev lines.

    Returns:
        `utility.casing` (F1; series `model` and `usual casing`), `utility.casing_accuracy` of both, and
        `utility.casing_gain`, their F1's difference. Chance: all in lower case. Control: the casings that were
        restored, dealt out anew among the words. Intervals draw test lines anew; the model is trained once.

    Raises:
        MissingExtra: no PyTorch. InputError: no capital among the test lines, or training that cannot start.
    """
    need_torch()
    settings = settings or CasingSettings()
    train, _, test = parts
    reference = [" ".join(line.split()) for line in test.lines]
    lowered = lowered_lines(reference)
    lower = count_words(reference, lowered)
    if not lower[:, GOLD].sum():
        raise InputError("its lines hold no capital letter: there is nothing to restore", where=test.name)
    restored, detail = _restored(parts, lowered, int(rng.integers(2**31)), settings, threads, on_look)
    usual = restore_usual(lowered, usual_casings(train.lines))
    scores = _Scores(reference, lower, detail, rng, draws)
    metrics: tuple[Metric, ...] = ("f1", "accuracy")
    sides = {"model": restored, "usual casing": usual}
    return [*(scores.side(m, *side) for m in metrics for side in sides.items()), scores.gain(restored, usual)]


def _restored(
    parts: tuple[Lines, Lines, Lines],
    lowered: list[str],
    seed: int,
    settings: CasingSettings,
    threads: int,
    on_look: OnLook | None,
) -> tuple[list[str], dict[str, Any]]:
    """Train, and case the lowered lines; what training was like."""
    from clinveil.utility.casing.lstm import CharacterLstm
    from clinveil.utility.casing.search import restore
    from clinveil.utility.casing.training import train_characters

    device = device_named(settings.device)
    train, dev, test = parts
    characters = Characters.of(train.lines)
    text = characters.stream(train.lines)
    layers, hidden = settings.shape
    with seeded(seed, threads=threads):
        model = CharacterLstm(len(characters), layers, hidden, settings.dropout)
        done = train_characters(model, text, characters.stream(dev.lines), settings, device, on_look)
        restored = restore(done.model, characters, lowered, settings)
    detail: dict[str, Any] = {"train_lines": len(train), "dev_lines": len(dev), "test_lines": len(test)}
    detail |= {"characters": len(text), "alphabet": len(characters), "layers": layers, "hidden": hidden}
    detail |= {"dev_loss": done.dev_loss, "epochs": done.epochs, "best_epoch": done.best_epoch}
    detail |= {"stopped": done.stopped, "beam": settings.beam, "state": settings.state}
    detail |= {"epochs_asked": settings.epochs, "batch": settings.batch}
    return restored, detail


class _Scores:
    """Turns restored lines into findings, with intervals over test lines."""

    def __init__(self, reference: list[str], lower: Counts, detail: dict[str, Any], rng: Generator, draws: int) -> None:
        self.reference, self.lower, self.rng, self.draws = reference, lower, rng, draws
        self.detail = {**detail, "unit": "words", "interval": "bootstrap over lines, 95 %"}

    def side(self, metric: Metric, series: str, guess: list[str]) -> Finding:
        """F1 or accuracy of one way to restore."""
        counts = count_words(self.reference, guess)
        control = count_words(self.reference, dealt_anew(guess, self.rng))
        all_of = score(counts)
        low, high = self._interval(lambda weights: getattr(score(counts, weights), metric))
        detail = {**self.detail, "series": series, "metric": metric, "control_is": "restored casings dealt out anew"}
        detail |= {"precision": all_of.precision, "recall": all_of.recall}
        if series == "model" and metric == "f1" and detail["stopped"] != "all epochs":
            made = f"{detail['epochs']:.1f} of {detail['epochs_asked']} passes"
            detail["warning"] = f"training ended early ({detail['stopped']}), after {made}"
        name = "utility.casing" + ("" if metric == "f1" else "_accuracy")
        chance, control_value = getattr(score(self.lower), metric), getattr(score(control), metric)
        return Finding(
            *(name, getattr(all_of, metric), int(counts[:, -1].sum()), "higher", low, high, chance, control_value),
            source=SOURCE,
            detail=detail,
        )

    def gain(self, guess: list[str], usual: list[str]) -> Finding:
        """F1 of the model less F1 of the usual casings, on the same lines."""
        own, floor = count_words(self.reference, guess), count_words(self.reference, usual)
        low, high = self._interval(lambda weights: score(own, weights).f1 - score(floor, weights).f1)
        value = score(own).f1 - score(floor).f1
        detail = {**self.detail, "series": "model less usual casing", "metric": "f1"}
        n = int(own[:, -1].sum())
        return Finding("utility.casing_gain", value, n, "higher", low, high, 0.0, None, SOURCE, detail)

    def _interval(self, statistic: Callable[[NDArray[np.int64]], float]) -> tuple[float, float]:
        return bootstrap_weights(len(self.reference), statistic, self.rng, draws=self.draws)
