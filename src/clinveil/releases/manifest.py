"""What a run records, whichever kind of release it made, and `manifest.json`, which tells it.

The public edition names no path, host, user or source identifier.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clinveil.core.errors import ClinveilError, InputError
from clinveil.core.files import read_json, sha256
from clinveil.core.finding import Finding
from clinveil.core.keys import Key
from clinveil.core.settings import NotesSettings
from clinveil.corpus.open import open_corpus
from clinveil.report.edition import outward_finding, outward_value
from clinveil.report.record import Edition, Gate, tally

SCHEMA = "clinveil.manifest/2"
OLDER = ("clinveil.manifest/1", "clinveil.synthesis/1")  # manifests of earlier versions
GATE_FIELDS = ("name", "passed", "outcome", "switched_off", "threshold", "power")  # beside the value
SUMS, CARD, NAME = "SHA256SUMS", "README.md", "manifest.json"


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
    """What a run records.

    Attributes:
        kind: of release.
        notes: the file of notes. read: rows of the source, of which gates count shares.
        settings: those that a recipient may see. public_seeds: what came of a public seed, in words.
        told: what this producer alone has to tell, to the recipient and (as well) to the custodian.
        nth: of the releases under the key, this one.
    """

    kind: str
    key: Key
    notes: NotesFile
    read: int
    settings: Mapping[str, Any]
    gates: Sequence[Gate]
    findings: Sequence[Finding]
    public_seeds: Sequence[str] = ()
    told: Mapping[str, Any] = field(default_factory=dict)
    told_inside: Mapping[str, Any] = field(default_factory=dict)
    nth: int = 1
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def run(self) -> str:
        """A name for the run that says nothing of its notes."""
        more = f"-{self.nth}" if self.nth > 1 else ""
        return f"{self.created[:10]}-{self.key.commitment[:8]}{more}"

    def manifest(self, edition: Edition, files: Mapping[str, str]) -> dict[str, Any]:
        """The manifest: to the recipient ("external") nothing that the external report hides; `files` with hashes."""
        outward = edition == "external"
        return {
            "schema": SCHEMA,
            "tool": "clinveil",
            "version": version("clinveil"),
            "created": self.created,
            "kind": self.kind,
            "settings": dict(self.settings),
            "notes": asdict(self.notes),
            "files": dict(files),
            "key_commitment": self.key.commitment,
            **self.told,
            "switched_off": [gate.name for gate in self.gates if gate.switched_off],
            "gates": [self._gate(gate, outward=outward) for gate in self.gates],
            "findings": [outward_finding(f) if outward else f.as_dict() for f in self.findings],
            "test_seed": bool(self.public_seeds),
            **({} if outward else self.told_inside),
        }

    def _gate(self, gate: Gate, *, outward: bool) -> dict[str, Any]:
        value = outward_value(gate, self.read) if outward else gate.value
        return {**{name: getattr(gate, name) for name in GATE_FIELDS}, "value": value}


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


REPORT = "report.html"
COMPANIONS = (CARD, NAME, SUMS)


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one verification step."""

    name: str
    passed: bool
    detail: str = ""


def verify(folder: Path) -> list[Check]:
    """All checks of the folder of a release. Raises InputError where there is nothing to check."""
    if not folder.is_dir():
        raise InputError("is not a release folder", where=folder.name, hint="name OUT/release")
    document = read_json(folder / NAME)
    manifest = document if isinstance(document, dict) and document.get("schema") == SCHEMA else None
    if isinstance(document, dict) and document.get("schema") in OLDER:
        raise older(folder)
    missing = [name for name in (*COMPANIONS, REPORT) if not (folder / name).is_file()]
    if missing:
        hint = "; name OUT/release" if (folder / "release").is_dir() or (folder / "out").is_dir() else ""
        return [Check("all files are there", False, "missing: " + ", ".join(missing) + hint)]
    if manifest is None:
        return [Check("the manifest can be read", False, f"it is not {SCHEMA}")]
    try:
        return [Check("all files are there", True), *_sums(folder), *_manifest_checks(folder, manifest)]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        # A manifest from elsewhere may hold anything.
        return [Check("the manifest and the list of sums say what they should", False, "they are damaged")]


def older(folder: Path) -> InputError:
    """The error for a folder that an earlier version made."""
    what = "was made by an earlier version of clinveil"
    return InputError(what, where=folder.name, hint="use that version, or make the release again in another folder")


def _sums(folder: Path) -> Iterator[Check]:
    listed = {}
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    found = released_files(folder)
    extra, gone = sorted(found.keys() - listed.keys()), sorted(listed.keys() - found.keys())
    changed = sorted(n for n in found.keys() & listed.keys() if found[n] != listed[n])
    yield Check("every file is listed, and every listed file is there", not extra and not gone, _names(extra + gone))
    yield Check("the hashes agree", not changed, _names(changed))


def _manifest_checks(folder: Path, manifest: dict[str, Any]) -> Iterator[Check]:
    seal = hashlib.sha256(canonical(manifest).encode()).hexdigest()
    yield Check("the manifest is as it was sealed", seal == manifest.get("self_sha256"))
    found = released_files(folder)
    named: dict[str, str] = manifest["files"]
    yield Check("the manifest names the released notes", all(found.get(n) == d for n, d in named.items()))
    gates = manifest["gates"]
    said = tally(str(g.get("outcome", "passed" if g["passed"] else "failed")) for g in gates)
    yield Check("all gates passed", bool(gates) and all(g["passed"] for g in gates), said)
    yield Check("no test seed", not manifest["test_seed"])
    yield _rows(folder, manifest)


def _rows(folder: Path, manifest: dict[str, Any]) -> Check:
    what = "the notes have the columns and the rows that the manifest says"
    notes = manifest["notes"]
    if Path(notes["file"]).name != notes["file"]:
        return Check(what, False, "it names notes outside the release")
    try:
        rows = 0
        settings = NotesSettings(text=notes["text"], id=notes["id"], patient=notes["patient"], preset="none")
        for batch in open_corpus(folder / notes["file"], settings, keep=tuple(notes["keep"])).batches():
            rows += batch.num_rows
    except ClinveilError as error:
        return Check(what, False, error.what)
    return Check(what, rows == notes["rows"], f"{rows:,} rows")


def _names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
