"""What a run has to tell, whoever made its notes, and `manifest.json`, which tells it.

The public edition names no path, host, user or source identifier.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clinveil.core.files import sha256
from clinveil.core.finding import Finding
from clinveil.core.keys import Key
from clinveil.report.edition import outward_finding, outward_value
from clinveil.report.record import Edition, Gate

SCHEMA = "clinveil.manifest/1"
SYNTHETIC = "synthetic"  # `kind` of the manifest beside synthetic notes; a release's names none
SUMS, CARD, NAME = "SHA256SUMS", "README.md", "manifest.json"
TEST_SEED = "TEST SEED: not for release"


@dataclass(frozen=True)
class NotesFile:
    """The released notes: the name of the file, its rows, and its columns by role (None: it has no such column)."""

    file: str
    rows: int
    text: str
    id: str
    patient: str | None = None
    keep: Sequence[str] = ()


@dataclass(frozen=True)
class Account:
    """What a run has to tell, whichever producer made its notes.

    Attributes:
        notes: the file of notes. read: rows of the source, of which gates count shares.
        settings: those that a recipient may see. public_seeds: what came of a public seed, in words.
        told: what this producer alone has to tell, to the recipient and (as well) to the custodian.
        gate_fields: what manifests say of a gate beside its value.
    """

    key: Key
    notes: NotesFile
    read: int
    settings: Mapping[str, Any]
    gates: Sequence[Gate]
    findings: Sequence[Finding]
    public_seeds: Sequence[str] = ()
    told: Mapping[str, Any] = field(default_factory=dict)
    told_inside: Mapping[str, Any] = field(default_factory=dict)
    gate_fields: Sequence[str] = ("name", "passed", "outcome", "threshold", "power")
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def run(self) -> str:
        """A name for the run that says nothing of its notes."""
        return f"{self.created[:10]}-{self.key.commitment[:8]}"

    @property
    def refused(self) -> bool:
        """Whether a gate failed, so that nothing may leave."""
        return not all(gate.passed for gate in self.gates)

    def manifest(self, edition: Edition, files: Mapping[str, str]) -> dict[str, Any]:
        """The manifest: to the recipient ("external") nothing that the external report hides; `files` with hashes."""
        outward = edition == "external"
        return {
            "schema": SCHEMA,
            "tool": "clinveil",
            "version": version("clinveil"),
            "created": self.created,
            "settings": dict(self.settings),
            "notes": asdict(self.notes),
            "files": dict(files),
            "key_commitment": self.key.commitment,
            **self.told,
            "gates": [self._gate(gate, outward=outward) for gate in self.gates],
            "findings": [outward_finding(f) if outward else f.as_dict() for f in self.findings],
            "test_seed": bool(self.public_seeds),
            **({} if outward else self.told_inside),
        }

    def _gate(self, gate: Gate, *, outward: bool) -> dict[str, Any]:
        value = outward_value(gate, self.read) if outward else gate.value
        return {**{name: getattr(gate, name) for name in self.gate_fields}, "value": value}


def canonical(document: Mapping[str, Any]) -> str:
    """The JSON text that the manifest's own hash is taken of: sorted keys, no spaces, no `self` entry."""
    rest = {k: v for k, v in document.items() if k != "self_sha256"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sealed(document: Mapping[str, Any]) -> str:
    """The document as indented JSON with `self_sha256`, the hash of its canonical form."""
    seal = hashlib.sha256(canonical(document).encode()).hexdigest()
    return json.dumps({**document, "self_sha256": seal}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def released_files(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a release folder but the list of sums itself, by relative name."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != SUMS)
    return {p.relative_to(folder).as_posix(): sha256(p) for p in files}


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` in the layout that `sha256sum --check` reads."""
    lines = (f"{digest}  {name}\n" for name, digest in released_files(folder).items())
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def write_companions(folder: Path, card: str, document: Mapping[str, Any]) -> None:
    """Write what a recipient needs beside the notes: the card, the manifest, sealed, and the sums of all files."""
    (folder / CARD).write_text(card, encoding="utf-8")
    (folder / NAME).write_text(sealed(document), encoding="utf-8")
    write_sums(folder)
