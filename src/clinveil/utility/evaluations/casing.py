"""Restore letter case with a character model of the notes (paper C).

Section 3.3 of the paper; compared with the usual casing of words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator, default_rng

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.neural import device_named, need_torch, seeded
from clinveil.core.settings import SEED, LabelledNotesSettings, Settings, flag, group
from clinveil.core.types import Say
from clinveil.stats.intervals import jackknife_t, share_by_patient, share_method
from clinveil.utility.evaluations import THREADS, Evaluated, Evaluation, Input, evaluations
from clinveil.utility.evaluations._case_lines import (
    GOLD,
    WORDS,
    Counts,
    Lines,
    alphabet_of,
    by_owner,
    count_words,
    f1_shares,
    permuted,
    read_lines,
    restore_usual,
    score,
    split_lines,
    stream,
    usual_casings,
)

SOURCE = "paper C, section 3.3 (letter-case restoration); character LSTM of Susanto et al. 2016"
SIZES = {"tiny": (1, 64), "small": (2, 300), "large": (3, 700)}  # layers, units; tiny is for tests


class CasingSettings(Settings):
    """Settings of the character LSTM of Susanto et al. 2016 (raymondhs/char-rnn-truecase), its
    training and search.
    """

    size: Literal["tiny", "small", "large"] = flag(
        "small", "2 layers of 300 (small), 3 of 700 (large), 1 of 64 (tiny)."
    )
    hidden: int | None = flag(None, "Units of a layer (default: by --size).", ge=1, le=8192)
    dropout: float = flag(0.25, "Dropout between layers and before the output.", ge=0, lt=1)
    batch: int = flag(100, "Columns of the training text.", ge=1, le=65_536)
    sequence: int = flag(50, "Characters of back-propagation.", ge=1, le=10_000)
    epochs: int = flag(30, "Maximum passes over the training text.", ge=1, le=10_000)
    learning_rate: float = flag(0.002, "RMSprop's learning rate.", gt=0, allow_inf_nan=False)
    decay: float = flag(
        0.97, "Factor of the rate after each epoch, from --decay-after on.", gt=0, le=1
    )
    decay_after: int = flag(10, "First epoch after which the rate decays.", ge=1)
    evaluate_every: int = flag(
        1_000, "Steps between evaluations of the dev text (also after each epoch).", ge=1
    )
    beam: int = flag(10, "Beam width of the search.", ge=1, le=1000)
    streams: int = flag(1, "Parts of the test text that are searched in parallel.", ge=1, le=10_000)
    device: str = flag("cpu", "cpu, cuda or cuda:1.")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of layers, and units of each."""
        layers, hidden = SIZES[self.size]
        return layers, self.hidden or hidden


def casing(
    parts: tuple[Lines, Lines, Lines],
    rng: Generator,
    settings: CasingSettings | None = None,
    *,
    threads: int = 1,
    say: Say = lambda line: None,
) -> list[Finding]:
    """Return F1 of words with capitals on the test lines, for the model and for the usual casing of
    each word.

    Args:
        parts: training, dev and test lines in their original case; owners of test lines are the
            unit of intervals.
        threads: threads of PyTorch; with one, the same seed gives the same bits.
        say: receives a line at each evaluation of the dev lines.

    Returns:
        `utility.casing` (F1; series `model` and `usual casing`) and `utility.casing_gain`, the
        difference of their F1.
        Chance: all words in lower case. Control: the restored casings permuted among the words.
            Intervals are over
        owners of test lines (patients or notes), or over lines without owners; the model is trained
        once.

    Raises MissingExtra: no PyTorch. InputError: no capital in the test lines, or training cannot
    start.
    """
    need_torch()
    settings = settings or CasingSettings()
    train, _, test = parts
    reference = [" ".join(line.split()) for line in test.lines]
    lowered = [line.lower() for line in reference]
    lower = count_words(reference, lowered)
    if not lower[:, GOLD].any():
        raise InputError("has no capital letter to restore", where=test.name)
    restored, detail = _restored(parts, lowered, int(rng.integers(2**31)), settings, threads, say)
    detail["independent"] = len(reference if test.owners is None else set(test.owners))
    of = "test lines" if test.owners is None else "patients or notes"
    findings = list[Finding]()
    sides = {"model": restored, "usual casing": restore_usual(lowered, usual_casings(train.lines))}
    counts = {
        series: by_owner(count_words(reference, guess), test.owners)
        for series, guess in sides.items()
    }
    for series, guess in sides.items():
        control = score(count_words(reference, permuted(guess, rng))).f1
        findings.append(_side(series, counts[series], score(lower).f1, control, of, detail))
    return [*findings, _gain(counts["model"], counts["usual casing"], of, detail)]


def _restored(
    parts: tuple[Lines, Lines, Lines],
    lowered: list[str],
    seed: int,
    settings: CasingSettings,
    threads: int,
    say: Say,
) -> tuple[list[str], dict[str, Any]]:
    """Train, and restore the case of lines in lower case; return them with details of the
    training.
    """
    from clinveil.utility.evaluations._case_model import CharacterLstm, CharacterTraining, restore

    device = device_named(settings.device)
    train, dev, test = parts
    alphabet = alphabet_of(train.lines)
    text = stream(alphabet, train.lines)
    layers, hidden = settings.shape
    with seeded(seed, threads=threads):
        model = CharacterLstm(len(alphabet), layers, hidden, settings.dropout)
        training = CharacterTraining(
            model, text, stream(alphabet, dev.lines), settings, device, say
        ).fit()
        restored = restore(training.finish(), alphabet, lowered, settings)
    detail: dict[str, Any] = {
        "train_lines": len(train),
        "dev_lines": len(dev),
        "test_lines": len(test),
    }
    detail |= {
        "characters": len(text),
        "alphabet": len(alphabet),
        "layers": layers,
        "hidden": hidden,
    }
    detail |= training.history | {"beam": settings.beam}
    detail |= {"epochs_asked": settings.epochs, "batch": settings.batch}
    return restored, detail


def _side(
    series: str, counts: Counts, chance: float, control: float, of: str, detail: dict[str, Any]
) -> Finding:
    """Return F1 of restored lines, from the counts of each owner."""
    own = score(counts)
    shares = f1_shares(counts)
    more = {
        **detail,
        "series": series,
        "metric": "f1",
        "precision": own.precision,
        "recall": own.recall,
    }
    if series == "model" and detail["stopped"] != "all epochs":
        done = f"{detail['epochs']:.1f} of {detail['epochs_asked']} epochs"
        more["warning"] = f"training ended early ({detail['stopped']}), after {done}"
    return Finding(
        *(
            "utility.casing",
            own.f1,
            int(counts[:, WORDS].sum()),
            "higher",
            *share_by_patient(shares),
        ),
        *(chance, control, SOURCE, more),
        unit="words",
        method=share_method(shares, of),
        chance_is="all in lower case",
        control_is="restored casings permuted among the words",
        control_kind="negative",
    )


def _gain(own: Counts, floor: Counts, of: str, detail: dict[str, Any]) -> Finding:
    """Return F1 of the model minus F1 of the usual casing, on the same lines."""
    low = high = None
    if enough := len(own) > 1:
        both = np.stack([own, floor], axis=1)
        ends = jackknife_t(both, lambda sums: score(sums[:1]).f1 - score(sums[1:]).f1)
        low = max(-1.0, ends.low)
        high = min(1.0, ends.high)
    n = int(own[:, WORDS].sum())
    more = {**detail, "series": "model less usual casing", "metric": "f1"}
    return Finding(
        *(
            "utility.casing_gain",
            score(own).f1 - score(floor).f1,
            n,
            "higher",
            low,
            high,
            0.0,
            None,
            SOURCE,
            more,
        ),
        unit="words",
        method=f"jackknife over {of}, t, 95 %" if enough else f"none, of one of the {of}",
    )


@evaluations.register("casing")
class Casing(Evaluation):
    """Train a character model, restore the case of lower-case text, and compare F1 with each word's
    usual case.
    """

    inputs: ClassVar[Mapping[str, Input]] = {
        "train": Input(
            "Training text with case: one sentence per line (.txt, .txt.gz), or notes.",
            required=True,
        ),
        "dev": Input("Validation text (default: split off TRAIN).", "--dev"),
        "test": Input("Test text with case (default: split off TRAIN).", "--test"),
    }
    model: CasingSettings = group(CasingSettings)
    notes: LabelledNotesSettings = group(LabelledNotesSettings)
    seed: int | None = SEED
    workers: int = THREADS

    def __call__(
        self, given: Mapping[str, Any], seed: int = 1, say: Say = lambda line: None
    ) -> Evaluated:
        """Return F1 of the model and of the usual casing."""
        device_named(self.model.device)  # before what imports PyTorch

        rng = default_rng(seed)
        how = self.model
        train = given["train"]
        others = (given.get(name) for name in ("dev", "test"))
        dev, test = (read_lines(path, self.notes) if path else None for path in others)
        parts = split_lines(read_lines(train, self.notes), dev, test, rng)
        findings = casing(parts, rng, how, threads=self.workers, say=say)
        return Evaluated(findings, f"{train.name}, {how.size}, beam {how.beam} (seed {seed})")
