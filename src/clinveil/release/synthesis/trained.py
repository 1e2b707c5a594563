"""The model of a run: trained now, before a kill, or by an earlier run; whom it saw, and whether its seed is public."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clinveil.lm.checkpoint import load_model, save_model
from clinveil.lm.model import LanguageModel
from clinveil.lm.notes import PlainNotes, Seen, encode
from clinveil.lm.train import make_vocabulary, train_model
from clinveil.release.synthesis.settings import SynthesisSettings
from clinveil.release.synthesis.sides import Sides, split_as_before, split_sides

STATE = "training.safetensors"


@dataclass(frozen=True)
class Trained:
    """A model, and whom it was trained on.

    Attributes:
        seed, share: of its split and training; the seed is secret unless `public_seed`. before: by an earlier run.
    """

    model: LanguageModel = field(repr=False)
    sides: Sides
    seed: int = field(repr=False)
    share: float
    public_seed: bool
    before: bool

    @property
    def recipe(self) -> dict[str, Any] | None:
        """How a network was built and trained, without anything of the notes; None for a unigram."""
        network = getattr(self.model, "network", None)  # importing the class would need PyTorch
        return None if network is None else dict(network.recipe.as_dict())


def load_trained(place: Path, notes: PlainNotes, settings: SynthesisSettings, *, before: bool) -> Trained:
    """The model in a folder. Raises InputError or UsageError where it saw other notes, or is none of `synthesize`."""
    model, about = load_model(place, device=settings.lm.device)
    split: Any = about.get("split")
    sides = split_as_before(notes, split, place.name)
    # A model that does not say how it was seeded counts as publicly seeded: the safe side of not knowing.
    public = about.get("public_seed") is not False
    return Trained(model, sides, int(split["seed"]), float(split["share"]), public, before)


def train_anew(
    notes: PlainNotes, settings: SynthesisSettings, seed: int, vault: Path, say: Callable[[str], None]
) -> Trained:
    """Split, train (or go on from the vault's last state), and keep the model in the vault."""
    sides = split_sides(notes, settings.held_out, seed)
    say(f"{len(sides.training)} notes to train on, {len(sides.held_out)} kept aside")
    vocabulary = make_vocabulary(sides.training, settings.lm)
    model, went = train_model(
        encode(sides.training.texts, vocabulary),
        vocabulary,
        settings.lm,
        seed=seed,
        threads=settings.workers,
        validation=encode(sides.held_out.texts, vocabulary),
        state=vault / STATE,
        say=say,
    )
    split = {"seed": seed, "share": settings.held_out, "notes_sha256": sides.digest}
    public = settings.seed is not None
    seen = Seen.of(sides.training).as_dict()
    save_model(model, vault / "model", {"split": split, "public_seed": public, "training": went, "notes": seen})
    return Trained(model, sides, seed, settings.held_out, public, before=False)
