"""From notes to a language model: vocabulary, training with a place to go on from, and what it will take."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinveil.core.errors import InputError
from clinveil.core.types import Say
from clinveil.corpus.medtext import dictionary
from clinveil.lm.model import LanguageModel, fit_of
from clinveil.lm.notes import EncodedNotes, PlainNotes
from clinveil.lm.plan import Plan, columns_plan, rows_plan
from clinveil.lm.recipe import CountedKind, ModelSettings, Recipe, kind_of, neural_kind
from clinveil.lm.vocabulary import Vocabulary, WordVocabulary, digest, train_byte_pairs

if TYPE_CHECKING:
    from clinveil.core.fit import Weights
    from clinveil.lm.network import Network, NeuralModel
    from clinveil.lm.training import Training

FIRST_STEPS, TIMED_STEPS = 2, 8
SAVE_EVERY = 500  # steps between looks whether to write the state of the training


def quiet(line: str) -> None:
    """Say nothing."""


def make_vocabulary(notes: PlainNotes, settings: ModelSettings, *, always: Sequence[str] = ()) -> Vocabulary:
    """The vocabulary of training notes; `always`: words that are in it however rare.

    Raises MissingExtra for byte pairs without the library `tokenizers`.
    """
    if not settings.word_vocabulary:
        return train_byte_pairs(notes.texts, settings.vocabulary_size)
    words = dictionary(notes.texts, notes.patients, min_count=settings.min_count).words
    return WordVocabulary([*words, *(word for word in dict.fromkeys(always) if word not in set(words))])


def plan_of(encoded: EncodedNotes, recipe: Recipe, seed: int) -> Plan:
    """All batches of a training."""
    lanes, window, epochs = recipe.lanes, recipe.window, recipe.epochs
    if recipe.plan == "stream":
        return columns_plan(encoded.ids, lanes=lanes, window=window, epochs=epochs)
    return rows_plan(encoded, lanes=lanes, window=window, epochs=epochs, seed=seed)


def identity_of(encoded: EncodedNotes, vocabulary: Vocabulary, recipe: Recipe, seed: int) -> str:
    """A hash of notes, vocabulary, recipe and seed, which first weights and validation notes may be added to."""
    hashed = hashlib.sha256(encoded.ids.tobytes())
    hashed.update(encoded.offsets.tobytes())
    hashed.update(json.dumps([digest(vocabulary), recipe.as_dict(), seed], sort_keys=True).encode())
    return hashed.hexdigest()


@dataclass(frozen=True)
class NeuralTask:
    """One training of a network, from first weights where there are such.

    Attributes:
        validation: notes whose perplexity is looked at after each epoch. state: a file to write to and to go on from.
    """

    encoded: EncodedNotes
    vocabulary: Vocabulary
    recipe: Recipe
    seed: int
    device: str = "cpu"
    threads: int = 1
    validation: EncodedNotes | None = None
    state: Path | None = None
    initial: Weights | None = None

    @property
    def identity(self) -> str:
        """A hash of all that the training depends on, validation notes and first weights too."""
        hashed = hashlib.sha256(identity_of(self.encoded, self.vocabulary, self.recipe, self.seed).encode())
        if self.validation is not None:
            hashed.update(b"validation" + self.validation.ids.tobytes() + self.validation.offsets.tobytes())
        for name, weights in sorted((self.initial or {}).items()):
            hashed.update(name.encode() + weights.numpy().tobytes())
        return hashed.hexdigest()

    def run(self, say: Say = quiet) -> tuple[NeuralModel, dict[str, Any]]:
        """Train; also says how it went: losses and perplexities by epoch.

        Raises InputError for a loss that is no number (the last state written stays), too little memory, or a state of
        another training.
        """
        from clinveil.core.neural import seeded
        from clinveil.lm.network import NeuralModel
        from clinveil.lm.training import load_training, save_training

        refuse_too_large(self.vocabulary.size, self.recipe, self.device)
        identity = self.identity
        with seeded(self.seed, threads=self.threads):
            training = self.training()
            if self.state is not None and self.state.exists():
                load_training(training, self.state, identity)
                say(f"going on after step {training.progress.step:,} of {training.plan.steps:,}")
            say(_forecast(training))
            while not training.done:
                now, per_epoch = training.progress, training.steps_per_epoch
                epochs = len(now.losses)
                training.fit(min((now.step // per_epoch + 1) * per_epoch, now.step + SAVE_EVERY))
                if len(now.losses) > epochs:
                    say(_line(now.losses, now.looks, self.recipe.epochs))
                if self.state is not None:
                    save_training(training, self.state, identity)
            network = training.finish()
        return NeuralModel(self.vocabulary, network), training.history

    def training(self, plan: Plan | None = None) -> Training:
        """The training at its first step; call it inside `seeded`. `plan`: instead of that of all notes."""
        from clinveil.core.neural import device_named
        from clinveil.lm.network import NeuralModel
        from clinveil.lm.training import Training

        def perplexity(network: Network, notes: EncodedNotes) -> float:
            return fit_of(NeuralModel(self.vocabulary, network), notes).perplexity

        return Training(
            self.vocabulary.size,
            self.recipe,
            plan if plan is not None else plan_of(self.encoded, self.recipe, self.seed),
            seed=self.seed,
            device=device_named(self.device),
            initial=self.initial,
            validate=partial(perplexity, notes=self.validation) if self.validation is not None else None,
        )


def _forecast(training: Training) -> str:
    """How long the rest will take, from the first steps; they are made in order, so nothing changes."""
    start, tokens = training.progress.step, 0.0
    training.fit(start + FIRST_STEPS)
    before, began = training.progress.step, time.monotonic()
    for step in range(before, min(before + TIMED_STEPS, training.plan.steps)):
        tokens += training.plan.batch(step).normaliser
    training.fit(before + TIMED_STEPS)
    made, spent = training.progress.step - before, time.monotonic() - began
    if not made:
        return "training is nearly done"
    minutes = spent / made * (training.plan.steps - training.progress.step) / 60
    return f"{tokens / spent:,.0f} tokens a second; training will take about {minutes:,.1f} minutes"


def _line(losses: list[float], perplexities: list[float], epochs: int) -> str:
    seen = f", validation perplexity {perplexities[-1]:.1f}" if perplexities else ""
    return f"pass {len(losses)} of {epochs}: {losses[-1]:.3f} nats a token{seen}"


def train_model(
    encoded: EncodedNotes,
    vocabulary: Vocabulary,
    settings: ModelSettings,
    *,
    seed: int,
    threads: int = 1,
    validation: EncodedNotes | None = None,
    state: Path | None = None,
    say: Say = quiet,
) -> tuple[LanguageModel, dict[str, Any]]:
    """Train any of the models, and say how it went. Raises as `NeuralTask.run` does."""
    kind = kind_of(settings.model)
    if isinstance(kind, CountedKind):
        return kind.count(encoded, vocabulary), {}
    recipe = settings.recipe()
    task = NeuralTask(encoded, vocabulary, recipe, seed, settings.device, threads, validation, state)
    return task.run(say)


def parameters(size: int, recipe: Recipe) -> int:
    """How many weights a network has, about."""
    vectors = size * recipe.width * (1 if recipe.tied else 2) + size
    return int(vectors + recipe.layers * neural_kind(recipe.kind).layer_weights * recipe.width**2)


def memory_needed(size: int, recipe: Recipe) -> int:
    """Bytes that training needs, about: weights, gradients, moments, and the scores of a batch with their gradient."""
    copies = 2 if recipe.optimizer == "sgd" else 4
    return 4 * copies * parameters(size, recipe) + 4 * 4 * size * recipe.window * recipe.lanes


def refuse_too_large(size: int, recipe: Recipe, device: str) -> None:
    """Raise InputError where training would not fit into the memory that is free (CPU only)."""
    free = _free_memory()
    needed = memory_needed(size, recipe)
    if device == "cpu" and free is not None and needed > free:
        what = f"a vocabulary of {size:,} needs about {needed / 2**30:.1f} GiB to train, {free / 2**30:.1f} are free"
        raise InputError(what, hint="--vocabulary bytes, a larger --min-count, or fewer --lanes")


def _free_memory() -> int | None:
    """Bytes that are free, where the system says so."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None
