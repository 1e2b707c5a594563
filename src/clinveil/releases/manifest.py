"""The record of a run and its `manifest.json`, for every kind of release; verification of a release folder.

The public edition contains no path, host, user or source identifier.
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
from clinveil.core.files import MARKER, read_json, sha256
from clinveil.core.finding import Finding
from clinveil.core.keys import Key
from clinveil.core.settings import NotesSettings
from clinveil.core.upload import SUCCESS
from clinveil.corpus.open import open_corpus
from clinveil.report.edition import outward_finding, outward_value
from clinveil.report.record import Edition, Gate, tally

SCHEMA = "clinveil.manifest/2"
OLDER = ("clinveil.manifest/1", "clinveil.synthesis/1")  # manifests of earlier versions
GATE_FIELDS = ("name", "passed", "outcome", "switched_off", "threshold", "power")  # in addition to the value
SUMS, CARD, NAME = "SHA256SUMS", "README.md", "manifest.json"


@dataclass(frozen=True)
class NotesFile:
    """The released notes: file name, number of rows, and columns by role (None: no such column)."""

    file: str
    rows: int
    text: str
    id: str
    patient: str | None = None
    keep: Sequence[str] = ()


@dataclass(frozen=True)
class Account:
    """The record of a run.

    Attributes:
        kind: kind of release.
        notes: the notes file. read: rows of the source, the denominator of shares in gates.
        settings: settings that a recipient may see. public_seeds: what was derived from a public seed.
        entries: manifest entries of this kind. private_entries: further entries of the internal edition.
        nth: number of this release under its key.
    """

    kind: str
    key: Key
    notes: NotesFile
    read: int
    settings: Mapping[str, Any]
    gates: Sequence[Gate]
    findings: Sequence[Finding]
    public_seeds: Sequence[str] = ()
    entries: Mapping[str, Any] = field(default_factory=dict)
    private_entries: Mapping[str, Any] = field(default_factory=dict)
    nth: int = 1
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def run(self) -> str:
        """Name of the run, independent of its notes."""
        more = f"-{self.nth}" if self.nth > 1 else ""
        return f"{self.created[:10]}-{self.key.commitment[:8]}{more}"

    def manifest(self, edition: Edition, files: Mapping[str, str]) -> dict[str, Any]:
        """Return the manifest of an edition; `files` are SHA-256 by name. "external" hides what the report hides."""
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
            **self.entries,
            "switched_off": [gate.name for gate in self.gates if gate.switched_off],
            "gates": [self._gate(gate, outward=outward) for gate in self.gates],
            "findings": [outward_finding(f) if outward else f.as_dict() for f in self.findings],
            "test_seed": bool(self.public_seeds),
            **({} if outward else self.private_entries),
        }

    def _gate(self, gate: Gate, *, outward: bool) -> dict[str, Any]:
        value = outward_value(gate, self.read) if outward else gate.value
        return {**{name: getattr(gate, name) for name in GATE_FIELDS}, "value": value}


def canonical(document: Mapping[str, Any]) -> str:
    """Return the JSON text whose hash the manifest contains: sorted keys, no spaces, without that hash."""
    rest = {k: v for k, v in document.items() if k != "self_sha256"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sealed(document: Mapping[str, Any]) -> str:
    """Return the document as indented JSON with `self_sha256`, the hash of its canonical form."""
    seal = hashlib.sha256(canonical(document).encode()).hexdigest()
    return json.dumps({**document, "self_sha256": seal}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def released_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a release folder, except the list of sums, by relative name."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != SUMS)
    return {p.relative_to(folder).as_posix(): sha256(p) for p in files}


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` in the format of `sha256sum --check`."""
    lines = (f"{digest}  {name}\n" for name, digest in released_files(folder).items())
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def write_companions(folder: Path, card: str, document: Mapping[str, Any]) -> None:
    """Write the card, the sealed manifest and the sums of all files."""
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
    """Run all checks of a release folder. Raises InputError if the folder does not exist."""
    if not folder.is_dir():
        refused = (folder.parent / "vault" / "refused").is_dir()
        hint = "the run was refused; see OUT/vault/report.html" if refused else "pass OUT/release"
        raise InputError("is not a release folder", where=folder.name, hint=hint)
    if (folder / "key.bin").is_file():
        raise InputError("is the vault of a release", where=folder.name, hint="pass OUT/release")
    document = read_json(folder / NAME)
    manifest = document if isinstance(document, dict) and document.get("schema") == SCHEMA else None
    if isinstance(document, dict) and document.get("schema") in OLDER:
        raise older(folder)
    missing = [name for name in (*COMPANIONS, REPORT) if not (folder / name).is_file()]
    if missing:
        hint = "; pass OUT/release" if (folder / "release").is_dir() or (folder / "out").is_dir() else ""
        return [Check("all files are present", False, "missing: " + ", ".join(missing) + hint)]
    if manifest is None:
        return [Check("the manifest can be read", False, f"it is not {SCHEMA}")]
    try:
        return [Check("all files are present", True), *_sums(folder), *_manifest_checks(folder, manifest)]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        # A manifest of unknown origin may contain anything.
        return [Check("the manifest and the list of sums are valid", False, "they are damaged")]


def older(folder: Path) -> InputError:
    """Return the error for a folder of an earlier version."""
    what = "was made by an earlier version of clinveil"
    return InputError(what, where=folder.name, hint="use that version, or create the release again in another folder")


def _sums(folder: Path) -> Iterator[Check]:
    listed = {}
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    found = released_files(folder)
    if SUCCESS in found and not (folder / SUCCESS).stat().st_size:  # a release that was uploaded
        found = {name: digest for name, digest in found.items() if name not in (SUCCESS, MARKER)}
    extra, gone = sorted(found.keys() - listed.keys()), sorted(listed.keys() - found.keys())
    changed = sorted(n for n in found.keys() & listed.keys() if found[n] != listed[n])
    yield Check("every file is listed, and every listed file exists", not extra and not gone, _names(extra + gone))
    yield Check("the hashes agree", not changed, _names(changed))


def _manifest_checks(folder: Path, manifest: dict[str, Any]) -> Iterator[Check]:
    seal = hashlib.sha256(canonical(manifest).encode()).hexdigest()
    yield Check("the manifest is unchanged", seal == manifest.get("self_sha256"))
    found = released_files(folder)
    named: dict[str, str] = manifest["files"]
    yield Check("the manifest lists the released notes", all(found.get(n) == d for n, d in named.items()))
    gates = manifest["gates"]
    summary = tally(str(g.get("outcome", "passed" if g["passed"] else "failed")) for g in gates)
    yield Check("all gates passed", bool(gates) and all(g["passed"] for g in gates), summary)
    yield Check("no test seed", not manifest["test_seed"])
    yield _rows(folder, manifest)


def _rows(folder: Path, manifest: dict[str, Any]) -> Check:
    what = "the notes have the columns and rows of the manifest"
    notes = manifest["notes"]
    if Path(notes["file"]).name != notes["file"]:
        return Check(what, False, "it refers to notes outside the release")
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
