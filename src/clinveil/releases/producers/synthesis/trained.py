"""The model of a run, and whom it was trained on: which patients, and whether its seed is public.

Which patients are kept from training is a fixed function of patient and split seed, so that nothing need be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError, UsageError
from clinveil.core.types import Say
from clinveil.lm.model import LanguageModel, load_model, save_model
from clinveil.lm.notes import PlainNotes, Seen, encode
from clinveil.lm.train import make_vocabulary, train_model
from clinveil.releases.producers.synthesis.settings import SynthesisSettings

STATE = "training.safetensors"
FEWEST = 2  # patients of each side


@dataclass(frozen=True)
class TrainHoldoutSplit:
    """The notes that a model is trained on, and those of the patients kept from it."""

    training: PlainNotes = field(repr=False)
    held_out: PlainNotes = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the training notes and whose they are, in any order: what a model remembers of them."""
        hashed = sha256()
        for row in sorted(zip(self.training.patients, self.training.texts, strict=True)):
            hashed.update(repr(row).encode("utf-8", "surrogatepass"))
        return hashed.hexdigest()


def split_patients(notes: PlainNotes, share: float, seed: int) -> TrainHoldoutSplit:
    """Keep about `share` of the patients aside. Raises InputError where a side has fewer than two patients."""
    # Ranks and not single draws, so that few patients are split as asked too.
    order = sorted(set(notes.patients), key=lambda patient: _draw(patient, seed))
    aside = set(order[: n_held_out(len(order), share)])
    rows = range(len(notes))
    return TrainHoldoutSplit(
        notes.rows([row for row in rows if notes.patients[row] not in aside]),
        notes.rows([row for row in rows if notes.patients[row] in aside]),
    )


def n_held_out(patients: int, share: float) -> int:
    """How many of so many patients are kept from training. Raises InputError where a side would have under two."""
    n = max(FEWEST, round(share * patients))
    if patients < n + FEWEST:
        raise InputError(f"{patients} patients are too few to train on some and keep others aside")
    return n


def split_as_before(notes: PlainNotes, split: Any, name: str) -> TrainHoldoutSplit:
    """The split that a model was trained with; other notes would make the floor and all gates look at others."""
    unknown = UsageError("does not say whom it was trained on", where=name, remedy="a model of synthesize")
    if not isinstance(split, dict) or not {"seed", "share", "notes_sha256"} <= split.keys():
        raise unknown
    try:
        share, seed = float(split["share"]), int(split["seed"])
        if not 0 < share < 1 or not 0 <= seed < 2**63:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise unknown from None
    sides = split_patients(notes, share, seed)
    if sides.digest != split["notes_sha256"]:
        remedy = "the notes of that run, read the same way; or train anew, without --from"
        raise InputError("was trained on other notes than these", where=name, remedy=remedy)
    return sides


def _draw(patient: str, seed: int) -> bytes:
    return blake2b(patient.encode("utf-8", "surrogatepass"), key=b"split %d" % seed, digest_size=16).digest()


@dataclass(frozen=True)
class Trained:
    """A model, and whom it was trained on.

    Attributes:
        seed, share: of its split and training; the seed is secret unless `public_seed`. before: by an earlier run.
    """

    model: LanguageModel = field(repr=False)
    sides: TrainHoldoutSplit
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


def train_anew(notes: PlainNotes, settings: SynthesisSettings, seed: int, vault: Path, say: Say) -> Trained:
    """Split, train (or go on from the vault's last state), and keep the model in the vault."""
    sides = split_patients(notes, settings.held_out, seed)
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
