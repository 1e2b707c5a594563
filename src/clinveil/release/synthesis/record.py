"""What a run has to tell: the custodian's manifest, the recipient's, and the lines that are printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clinveil.core.finding import Finding
from clinveil.core.keys import Key
from clinveil.corpus.file_format import OWN, suffix_of
from clinveil.release.manifest import SCHEMA, SYNTHETIC
from clinveil.release.synthesis.floor import Floor
from clinveil.release.synthesis.gates import NOT_TRIED
from clinveil.release.synthesis.settings import SynthesisSettings
from clinveil.release.synthesis.trained import Trained
from clinveil.release.synthesis.write import Counts
from clinveil.report.edition import outward_finding, outward_value
from clinveil.report.record import Gate, Plain

TEST_SEED = "TEST SEED: not for release"
# What a recipient may see. A setting that is new stays inside until somebody adds it here.
SHOWN = ("count", "temperature", "top_p", "longest", "exact", "min_patients", "span", "prepared")


@dataclass(frozen=True)
class Account:
    """What a run has to tell.

    Attributes:
        seed: of the measurements; secret like the key, unless it is a public one.
    """

    settings: SynthesisSettings
    trained: Trained
    key: Key
    seed: int = field(repr=False)
    counts: Counts
    floor: Floor
    gates: Sequence[Gate]
    findings: Sequence[Finding]
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def public_seeds(self) -> list[str]:
        """What came of a public seed: `notes` (the draws), `model` (its split and training)."""
        return public_seeds(self.key, self.trained)

    @property
    def unknown_share(self) -> float:
        """Of the words written, those that are `<unk>`."""
        return self.counts.unknown / max(1, self.counts.words)


def public_seeds(key: Key, trained: Trained) -> list[str]:
    """What comes of a public seed: `notes`, `model`, both or neither."""
    given = (("notes", key.test_seed is not None), ("model", trained.public_seed))
    return [what for what, public in given if public]


def seed_mark(seeds: Sequence[str], out: Path) -> str | None:
    """The line about public seeds, None without any; it says where OUT itself cannot."""
    if not seeds:
        return None
    line = f"{TEST_SEED} (public seed of the {' and of the '.join(seeds)})"
    silent = suffix_of(out) not in ("", ".parquet")
    return f"{line}; {out.name} is of a kind that cannot say so itself" if silent else line


def full_manifest(account: Account) -> dict[str, Any]:
    """The manifest of the vault."""
    settings = account.settings.flat({"workers", "quiet", "force", "patients"})
    return {
        "schema": "clinveil.synthesis/1",
        "secret": True,
        **({"warning": TEST_SEED} if account.public_seeds else {}),
        **_told(account),
        "settings": settings,
        "notes": _counts(account),
        **_measured(account),
        "training_seed": account.trained.seed,
        "measuring_seed": account.seed,
    }


def public_manifest(account: Account, files: Mapping[str, str]) -> dict[str, Any]:
    """The manifest of what leaves: no seed, key, path, vocabulary or id; `files` are the notes with their hashes."""
    settings = account.settings
    return {
        "schema": SCHEMA,
        "kind": SYNTHETIC,
        "tool": "clinveil",
        "created": account.created,
        **_told(account),
        "settings": {name: getattr(settings, name) for name in SHOWN}
        | {"held_out": account.trained.share, "patients_given": settings.patients is not None},
        "files": dict(files),
        "notes": {
            "file": OWN,
            "rows": account.counts.notes,
            "text": "text",
            "id": "note_id",
            "patient": None,
            "keep": [],
        },
        "counts": _counts(account),
        "gates": [_gate(gate, outward_value(gate, account.counts.notes)) for gate in account.gates],
        "findings": [outward_finding(finding) for finding in account.findings],
        "test_seed": bool(account.public_seeds),
    }


def _told(account: Account) -> dict[str, Any]:
    """What both manifests say."""
    trained = account.trained
    model: dict[str, Any] = {"kind": trained.model.kind, "trained": "before" if trained.before else "in this run"}
    model |= {"vocabulary": trained.model.vocabulary.kind, "recipe": trained.recipe}
    return {
        "version": version("clinveil"),
        "model": model,
        "key_commitment": account.key.commitment,
        "public_seeds": account.public_seeds,
        "not_tried": list(NOT_TRIED),
    }


def _measured(account: Account) -> dict[str, Any]:
    """Gates and findings with every count in full."""
    return {
        "gates": [_gate(gate, gate.value) for gate in account.gates],
        "findings": [finding.as_dict() for finding in account.findings],
    }


def _gate(gate: Gate, value: Plain) -> dict[str, Plain]:
    said = {
        name: getattr(gate, name) for name in ("name", "passed", "outcome", "threshold", "unit", "meaning", "power")
    }
    return said | {"value": value}


def _counts(account: Account) -> dict[str, Any]:
    more = {"words_below_floor": account.floor.replaced, "unknown_share": account.unknown_share}
    return vars(account.counts) | more


def lines(account: Account) -> Iterator[str]:
    """What is printed of a run; no word of a note."""
    counts, floor = account.counts, account.floor
    yield f"{counts.notes} notes, {counts.words:,} words; {counts.truncated} cut at the longest length"
    below = f"{floor.replaced:,} of {floor.words:,} words were below the rare-word floor and are <unk>"
    yield f"{below}; with those that the model wrote so itself {counts.unknown:,} are ({account.unknown_share:.1%})"
    for gate in account.gates:
        remark = f". {gate.power}" if gate.power else ""
        yield f"{'passed' if gate.passed else 'FAILED'}  {gate.name}: {gate.value} (at most {gate.threshold}){remark}"
    yield from (f"not tried: {what}" for what in NOT_TRIED)
