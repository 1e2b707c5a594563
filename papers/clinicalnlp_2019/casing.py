"""Restore letter case with a character model of the notes (paper C).

Section 3.3 of the paper; compared with the usual casing of words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from pydantic import Field

from clinveil import Finding, InputError
from clinveil.core import Number, Numbers, Settings, device_named, need_torch, seeded
from clinveil.stats import jackknife_t, share_by_patient, share_method
from papers.clinicalnlp_2019.case_lines import (
    GOLD,
    WORDS,
    Lines,
    WordCounts,
    alphabet_of,
    by_owner,
    count_words,
    f1_shares,
    permuted,
    restore_usual,
    score,
    stream,
    usual_casings,
)

SOURCE = "paper C, section 3.3 (letter-case restoration); character LSTM of Susanto et al. 2016"


class CasingSettings(Settings):
    """Settings of the character LSTM of Susanto et al. 2016 (raymondhs/char-rnn-truecase), its
    training and search.

    Attributes:
        layers, hidden: layers and units of each; 2 of 300 and 3 of 700 are theirs. dropout: between
            layers and before the output. batch: columns of the training text. sequence: characters
            of back-propagation. epochs: passes over the training text.
        learning_rate, decay, decay_after: RMSprop's rate, and its factor after each epoch from
            `decay_after` on. evaluate_every: steps between evaluations of the dev text.
        beam: width of the search. streams: parts of the test text that are searched in parallel.
    """

    layers: int = Field(default=2, ge=1, le=10)
    hidden: int = Field(default=300, ge=1, le=8192)
    dropout: float = Field(default=0.25, ge=0, lt=1)
    batch: int = Field(default=100, ge=1, le=65_536)
    sequence: int = Field(default=50, ge=1, le=10_000)
    epochs: int = Field(default=30, ge=1, le=10_000)
    learning_rate: float = Field(default=0.002, gt=0, allow_inf_nan=False)
    decay: float = Field(default=0.97, gt=0, le=1)
    decay_after: int = Field(default=10, ge=1)
    evaluate_every: int = Field(default=1_000, ge=1)
    beam: int = Field(default=10, ge=1, le=1000)
    streams: int = Field(default=1, ge=1, le=10_000)
    device: str = "cpu"


def casing(
    parts: tuple[Lines, Lines, Lines], rng: Generator, settings: CasingSettings
) -> list[Finding]:
    """Return F1 of words with capitals on the test lines, for the model and for the usual casing of
    each word.

    Args:
        parts: training, dev and test lines in their original case; owners of test lines are the
            unit of intervals.

    Returns:
        `utility.casing` (F1; series `model` and `usual casing`) and `utility.casing_gain`, the
        difference of their F1. Chance: all words in lower case. Control: the restored casings
        permuted among the words. Intervals are over owners of test lines (patients or notes), or
        over lines without owners; the model is trained once.

    Raises MissingExtra: no PyTorch. InputError: no capital in the test lines, or training cannot
    start.
    """
    need_torch()
    train, _, test = parts
    reference = [" ".join(line.split()) for line in test.lines]
    lowered = [line.lower() for line in reference]
    lower = count_words(reference, lowered)
    if not lower[:, GOLD].any():
        raise InputError("has no capital letter to restore", where=test.name)
    restored, numbers, warning = _restored(parts, lowered, int(rng.integers(2**31)), settings)
    numbers["independent"] = len(reference if test.owners is None else set(test.owners))
    scores = CasingScores(
        chance=score(lower).f1,
        unit="test lines" if test.owners is None else "patients or notes",
        numbers=numbers,
        warning=warning,
    )
    guesses = {
        "model": restored,
        "usual casing": restore_usual(lowered, usual_casings(train.lines)),
    }
    counts = {
        series: by_owner(count_words(reference, guess), test.owners)
        for series, guess in guesses.items()
    }
    findings: list[Finding] = []
    for series, guess in guesses.items():
        control = score(count_words(reference, permuted(guess, rng))).f1
        findings.append(scores.f1(series, counts[series], control))
    return [*findings, scores.gain(counts["model"], counts["usual casing"])]


def _restored(
    parts: tuple[Lines, Lines, Lines], lowered: list[str], seed: int, settings: CasingSettings
) -> tuple[list[str], dict[str, Number], str]:
    """Train, and restore the case of lines in lower case; return them with numbers of the training,
    and a warning if it ended early.
    """
    from papers.clinicalnlp_2019.case_model import CharacterLstm, CharacterTraining, restore

    device = device_named(settings.device)
    train, dev, test = parts
    alphabet = alphabet_of(train.lines)
    text = stream(alphabet, train.lines)
    dev_text = stream(alphabet, dev.lines)
    with seeded(seed):
        model = CharacterLstm(len(alphabet), settings.layers, settings.hidden, settings.dropout)
        training = CharacterTraining(model, text, dev_text, settings, device).fit()
        restored = restore(training.finish(), alphabet, lowered, settings)
    warning = ""
    if training.stopped:
        done = f"{training.history['epochs']:.1f} of {settings.epochs} epochs"
        warning = f"training ended early ({training.stopped}), after {done}"
    numbers: dict[str, Number] = {
        "train_lines": len(train),
        "dev_lines": len(dev),
        "test_lines": len(test),
        "characters": len(text),
        "alphabet": len(alphabet),
        "layers": settings.layers,
        "hidden": settings.hidden,
        **training.history,
        "beam": settings.beam,
        "epochs_asked": settings.epochs,
        "batch": settings.batch,
    }
    return restored, numbers, warning


@dataclass(frozen=True)
class CasingScores:
    """What all findings on the test lines share: F1 of lower case, the unit of intervals, numbers,
    and a warning about the training of the model.
    """

    chance: float
    unit: str
    numbers: Numbers = field(default_factory=dict)
    warning: str = ""

    def f1(self, series: str, counts: WordCounts, control: float) -> Finding:
        """Return F1 of restored lines, from the counts of each owner."""
        measured = score(counts)
        shares = f1_shares(counts)
        low, high = share_by_patient(shares)
        numbers = {**self.numbers, "precision": measured.precision, "recall": measured.recall}
        return Finding(
            "utility.casing",
            measured.f1,
            int(counts[:, WORDS].sum()),
            "higher",
            low,
            high,
            self.chance,
            control,
            SOURCE,
            series=series,
            labels=("f1",),
            numbers=numbers,
            warning=self.warning if series == "model" else "",
            unit="words",
            method=share_method(shares, self.unit),
            chance_is="all in lower case",
            control_is="restored casings permuted among the words",
            control_kind="negative",
        )

    def gain(self, counts: WordCounts, floor: WordCounts) -> Finding:
        """Return F1 of the model minus F1 of the usual casing, on the same lines."""
        low = high = None
        method = f"none, of one of the {self.unit}"
        if len(counts) > 1:
            both = np.stack([counts, floor], axis=1)
            ends = jackknife_t(both, lambda sums: score(sums[:1]).f1 - score(sums[1:]).f1)
            low = max(-1.0, ends.low)
            high = min(1.0, ends.high)
            method = f"jackknife over {self.unit}, t, 95 %"
        return Finding(
            "utility.casing_gain",
            score(counts).f1 - score(floor).f1,
            int(counts[:, WORDS].sum()),
            "higher",
            low,
            high,
            0.0,
            None,
            SOURCE,
            series="model less usual casing",
            labels=("f1",),
            numbers=self.numbers,
            unit="words",
            method=method,
        )
