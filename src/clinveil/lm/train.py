"""Train language models: vocabulary, resumable training of networks, and estimates of time and
memory.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinveil.core import InputError, Say, UsageError
from clinveil.corpus import dictionary
from clinveil.lm.layout import LayoutVocabulary
from clinveil.lm.model import LanguageModel, fit_of
from clinveil.lm.notes import EncodedNotes, PlainNotes
from clinveil.lm.plan import Plan, plan_of
from clinveil.lm.recipe import (
    PRETRAINED,
    CountedKind,
    ModelSettings,
    Recipe,
    TrainingSettings,
    kind_of,
    neural_kind,
)
from clinveil.lm.vocabulary import Vocabulary, WordVocabulary, digest, train_byte_pairs

if TYPE_CHECKING:
    from clinveil.lm.network import Network, NeuralModel
    from clinveil.lm.pretrained import PublicModel
    from clinveil.lm.training import Training

SAVE_EVERY = 500  # steps between two writes of the training state


def make_vocabulary(
    notes: PlainNotes, settings: ModelSettings, *, always: Sequence[str] = ()
) -> Vocabulary:
    """Return the vocabulary of training notes; `always`: words to include even if they are rare.

    Raises MissingExtra for byte pairs without the library `tokenizers`.
    """
    if not settings.word_vocabulary:
        return train_byte_pairs(notes.texts, settings.vocabulary_size)
    words = dictionary(notes.texts, notes.patients, min_count=settings.min_count).words
    return WordVocabulary(
        [*words, *(word for word in dict.fromkeys(always) if word not in set(words))]
    )


@dataclass(frozen=True)
class NeuralTask:
    """One training of a network.

    Attributes:
        validation: notes to measure perplexity on after each epoch. state: file of the training
            state, for resuming.
        start: returns the initial network, if it is not random. prefixes: tokens before each note,
            by label.
    """

    encoded: EncodedNotes
    vocabulary: Vocabulary
    recipe: Recipe
    seed: int
    device: str = "cpu"
    threads: int = 1
    validation: EncodedNotes | None = None
    state: Path | None = None
    start: Callable[[], Network] | None = None
    prefixes: Sequence[Sequence[int]] = ()

    @property
    def identity(self) -> str:
        """Hash of everything that the training depends on: notes, validation notes, vocabulary,
        recipe and seed.
        """
        described = json.dumps(
            [digest(self.vocabulary), self.recipe.as_dict(), self.seed], sort_keys=True
        )
        hashed = hashlib.sha256(described.encode())
        for notes in (self.encoded, *([] if self.validation is None else [self.validation])):
            hashed.update(notes.ids.tobytes() + notes.offsets.tobytes())
        return hashed.hexdigest()

    def run(self, say: Say = lambda line: None) -> tuple[NeuralModel, dict[str, Any]]:
        """Train, and return the model and its history: losses and perplexities by epoch.

        Raises InputError if the loss is not finite (the last state is kept), memory is too small,
        or the state belongs to another training.
        """
        from clinveil.core import seeded
        from clinveil.lm.network import NeuralModel
        from clinveil.lm.training import load_training, save_training

        refuse_too_large(self.vocabulary.size, self.recipe, self.device)
        identity = self.identity
        with seeded(self.seed, threads=self.threads):
            training = self.training()
            if self.state is not None and self.state.exists():
                load_training(training, self.state, identity)
                say(f"resuming after step {training.progress.step:,} of {training.steps:,}")
            began = time.monotonic()
            first = training.progress.step
            while not training.done:
                now = training.progress
                per_epoch = training.steps_per_epoch
                epochs = len(now.losses)
                training.fit(min((now.step // per_epoch + 1) * per_epoch, now.step + SAVE_EVERY))
                if len(now.losses) > epochs:
                    left = (
                        (time.monotonic() - began)
                        / (now.step - first)
                        * (training.steps - now.step)
                    )
                    say(_line(now.losses, now.validation_losses, self.recipe.epochs, left / 60))
                if self.state is not None:
                    save_training(training, self.state, identity)
            network = training.finish()
        return NeuralModel(self.vocabulary, network, self.prefixes), training.history

    def training(self, plan: Plan | None = None) -> Training:
        """Return the training at its first step; call it inside `seeded`. `plan`: replaces the plan
        of all notes.
        """
        from clinveil.core import device_named
        from clinveil.lm.network import NeuralModel
        from clinveil.lm.training import Training

        def perplexity(network: Network, notes: EncodedNotes) -> float:
            return fit_of(NeuralModel(self.vocabulary, network), notes).perplexity

        return Training(
            self.vocabulary.size,
            self.recipe,
            plan or plan_of(self.encoded, self.recipe, self.seed),
            seed=self.seed,
            device=device_named(self.device),
            validate=(
                partial(perplexity, notes=self.validation) if self.validation is not None else None
            ),
            start=self.start,
        )


def _line(losses: list[float], perplexities: list[float], epochs: int, minutes: float) -> str:
    validation = f", validation perplexity {perplexities[-1]:.1f}" if perplexities else ""
    left = f", about {minutes:,.1f} minutes left" if len(losses) < epochs else ""
    return f"epoch {len(losses)} of {epochs}: {losses[-1]:.3f} nats per token{validation}{left}"


def train_model(
    encoded: EncodedNotes,
    vocabulary: Vocabulary,
    settings: TrainingSettings,
    *,
    seed: int,
    threads: int = 1,
    validation: EncodedNotes | None = None,
    state: Path | None = None,
    say: Say = lambda line: None,
    public: PublicModel | None = None,
    prefixes: Sequence[Sequence[int]] = (),
) -> tuple[LanguageModel, dict[str, Any]]:
    """Train a model of any kind, and return it with its history. Raises as `NeuralTask.run` does.

    public: the model to start from. prefixes: tokens before each note, by label.
    """
    kind = kind_of(settings.model)
    if isinstance(kind, CountedKind):
        return kind.count(encoded, vocabulary), {}
    recipe = settings.recipe()
    start = None
    if settings.model == PRETRAINED:
        if public is None or not isinstance(vocabulary, LayoutVocabulary):
            raise UsageError(f"lm.model {PRETRAINED} is for releases with synthetic.init only")
        recipe = public.recipe(recipe)
        start = partial(public.network, vocabulary, recipe, encoded)
    task = NeuralTask(
        encoded,
        vocabulary,
        recipe,
        seed,
        settings.device,
        threads,
        validation,
        state,
        start=start,
        prefixes=prefixes,
    )
    return task.run(say)


def parameters(size: int, recipe: Recipe) -> int:
    """Return the approximate number of weights of a network."""
    vectors = size * recipe.width * (1 if recipe.tied else 2) + size
    return int(vectors + recipe.layers * neural_kind(recipe.kind).layer_weights * recipe.width**2)


def memory_needed(size: int, recipe: Recipe) -> int:
    """Return the approximate memory of training in bytes: weights, gradients, moments, and scores
    of a batch.
    """
    copies = 2 if recipe.optimizer == "sgd" else 4
    return 4 * copies * parameters(size, recipe) + 4 * 4 * size * recipe.window * recipe.lanes


def refuse_too_large(size: int, recipe: Recipe, device: str) -> None:
    """Raise InputError if training needs more than the free memory (CPU only)."""
    free = _free_memory()
    needed = memory_needed(size, recipe)
    if device == "cpu" and free is not None and needed > free:
        message = (
            f"training a vocabulary of {size:,} needs about {needed / 2**30:.1f} GiB;"
            f" {free / 2**30:.1f} are free"
        )
        raise InputError(
            message, hint="pass lm.vocabulary=bytes, a larger lm.min_count, or a smaller lm.lanes"
        )


def _free_memory() -> int | None:
    """Return the free memory in bytes; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")
        )
    except (OSError, StopIteration, ValueError):
        return None
