"""What a run has to tell: both manifests, the card, and the lines that are printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clinveil.core.finding import Finding
from clinveil.core.keys import TEST_SEED, Key
from clinveil.core.runfolder import FREE
from clinveil.corpus.file_format import OWN, suffix_of
from clinveil.lm.recipe import language_models
from clinveil.releases.manifest import SYNTHETIC, Account, NotesFile
from clinveil.releases.settings import SynthesisSettings
from clinveil.releases.synthesis_gates import NOT_TRIED
from clinveil.releases.synthesis_model import Counts, Floor, Trained
from clinveil.report.record import Gate, score
from clinveil.report.render import card, size_class

# What a recipient may see. A setting that is new stays inside until somebody adds it here.
SHOWN = ("count", "temperature", "top_p", "longest", "exact", "min_patients", "span", "prepared")
GATE_FIELDS = ("name", "passed", "outcome", "threshold", "unit", "meaning", "power")


@dataclass(frozen=True)
class Synthetic:
    """What was made, and how: what this producer alone has to tell.

    Attributes:
        seed: of the measurements; secret like the key, unless it is a public one.
    """

    settings: SynthesisSettings
    trained: Trained
    key: Key
    seed: int = field(repr=False)
    counts: Counts
    floor: Floor

    def account(self, gates: Sequence[Gate], findings: Sequence[Finding]) -> Account:
        """All that the run has to tell."""
        settings = {name: getattr(self.settings, name) for name in SHOWN}
        settings |= {"held_out": self.trained.share, "patients_given": self.settings.patients is not None}
        told = {"kind": SYNTHETIC, **self._told(), "counts": self._counts()}
        notes = NotesFile(OWN, self.counts.notes, "text", "note_id")
        seeds = public_seeds(self.key, self.trained)
        rows = self.counts.notes
        return Account(self.key, notes, rows, settings, gates, findings, seeds, told, gate_fields=GATE_FIELDS)

    def vault_manifest(self, account: Account) -> dict[str, Any]:
        """The manifest of the vault: every count in full, and the seeds; it lists no file, for none may be out."""
        inside = account.manifest("internal", {})
        return {
            "schema": "clinveil.synthesis/1",
            "secret": True,
            **({"warning": TEST_SEED} if account.public_seeds else {}),
            "version": version("clinveil"),
            **self._told(),
            "key_commitment": self.key.commitment,
            "settings": self.settings.flat(FREE | {"patients"}),
            "notes": self._counts(),
            **{name: inside[name] for name in ("gates", "findings")},
            "training_seed": self.trained.seed,
            "measuring_seed": self.seed,
        }

    def card(self, account: Account, files: Mapping[str, str]) -> str:
        """The card, made of counts, gates and public settings alone; `files` are the notes with their hashes."""
        said = account.manifest("external", files)
        kind = self.trained.model.kind
        recipe = {name: value for name, value in (self.trained.recipe or {}).items() if name != "kind"}
        more = {
            "gates": account.gates,
            "score": score(account.gates),
            "size": size_class(self.counts.notes),
            "made_by": language_models.get(kind).about if kind in language_models else "a language model",
            "facts": said["settings"] | recipe,
            "seeds": " ".join(_SEEDS[what] for what in account.public_seeds),
            "mark": TEST_SEED,
        }
        return card("synthetic.md", **(said | more)) + "\n"

    def lines(self, gates: Sequence[Gate]) -> Iterator[str]:
        """What is printed of a run; no word of a note."""
        counts, floor = self.counts, self.floor
        yield f"{counts.notes} notes, {counts.words:,} words; {counts.truncated} cut at the longest length"
        below = f"{floor.replaced:,} of {floor.words:,} words were below the rare-word floor and are <unk>"
        share = f"{counts.unknown_share:.1%}"
        yield f"{below}; with those that the model wrote so itself {counts.unknown:,} are ({share})"
        for gate in gates:
            remark = f". {gate.power}" if gate.power else ""
            outcome = "passed" if gate.passed else "FAILED"
            yield f"{outcome}  {gate.name}: {gate.value} (at most {gate.threshold}){remark}"
        yield from (f"not tried: {what}" for what in NOT_TRIED)

    def _told(self) -> dict[str, Any]:
        """What both manifests say."""
        trained = self.trained
        model: dict[str, Any] = {"kind": trained.model.kind, "trained": "before" if trained.before else "in this run"}
        model |= {"vocabulary": trained.model.vocabulary.kind, "recipe": trained.recipe}
        seeds = public_seeds(self.key, trained)
        return {"model": model, "public_seeds": seeds, "not_tried": list(NOT_TRIED)}

    def _counts(self) -> dict[str, Any]:
        more = {"words_below_floor": self.floor.replaced, "unknown_share": self.counts.unknown_share}
        return vars(self.counts) | more


_SEEDS = {"notes": "The notes were drawn under a public seed.", "model": "The model was trained with a public seed."}


def public_seeds(key: Key, trained: Trained) -> list[str]:
    """What comes of a public seed: `notes` (the draws), `model` (its split and training), both or neither."""
    given = (("notes", key.test_seed is not None), ("model", trained.public_seed))
    return [what for what, public in given if public]


def seed_mark(seeds: Sequence[str], out: Path) -> str | None:
    """The line about public seeds, None without any; it says where OUT itself cannot."""
    if not seeds:
        return None
    line = f"{TEST_SEED} (public seed of the {' and of the '.join(seeds)})"
    silent = suffix_of(out) not in ("", ".parquet")
    return f"{line}; {out.name} is of a kind that cannot say so itself" if silent else line
