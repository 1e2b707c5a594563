"""The record of a run and its `manifest.json`, for every kind of release; verification of a release
folder.

The released manifest contains no path, host, user or source identifier. That of the vault also has
full counts and private entries.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clinveil.core import (
    STATE,
    ClinveilError,
    Finding,
    InputError,
    Key,
    NotesSettings,
    SigningKey,
    canonical_pem,
    fingerprint_of,
    read_json,
    sha256,
    signature_agrees,
)
from clinveil.corpus import open_corpus
from clinveil.report import Gate, Verdict, outward_finding, outward_value, tally

SCHEMA = "clinveil.manifest/4"
# In addition to the value.
GATE_FIELDS = ("name", "risk", "passed", "outcome", "limit", "default", "power")
SUMS = "SHA256SUMS"
CARD = "README.md"
NAME = "manifest.json"
REPORT = "report.html"
SIGNATURE = "manifest.sig"
PUBLIC_KEY = "signing-key.pem"
SIGNED = (SIGNATURE, PUBLIC_KEY)
COMPANIONS = (CARD, NAME, SUMS, REPORT, *SIGNED)
"""Files of a release in addition to the notes."""


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
        settings: settings that a recipient may see. public_seeds: what was derived from a public
            seed.
        entries: manifest entries of this kind. private_entries: further entries of the
            vault's manifest.
        nth: number of this release under its key. signing_key: of the custodian, else derived from
            the key.
    """

    kind: str
    key: Key
    notes: NotesFile
    read: int
    settings: Mapping[str, Any]
    verdicts: Sequence[Verdict]
    findings: Sequence[Finding]
    public_seeds: Sequence[str] = ()
    entries: Mapping[str, Any] = field(default_factory=dict)
    private_entries: Mapping[str, Any] = field(default_factory=dict)
    nth: int = 1
    signing_key: SigningKey | None = None
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def signer(self) -> SigningKey:
        """The key that signs the manifest: the custodian's, or that of the release key."""
        return self.signing_key or SigningKey.derived(self.key)

    @property
    def run(self) -> str:
        """Name of the run, independent of its notes."""
        more = f"-{self.nth}" if self.nth > 1 else ""
        return f"{self.created[:10]}-{self.key.commitment[:8]}{more}"

    def manifest(self, files: Mapping[str, str], *, outward: bool) -> dict[str, Any]:
        """Return a manifest.

        Args:
            files: SHA-256 by name.
            outward: hide what the report hides, for the release; otherwise the vault's manifest.
        """
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
            "signing_key": self.signer.fingerprint,
            **self.entries,
            "audience": self.verdicts[0].audience,
            "verdicts": {one.audience: one.sentence for one in self.verdicts},
            "gates": [self._entry(gate, outward=outward) for gate in self.verdicts[0].gates],
            "findings": [outward_finding(f) if outward else f.as_dict() for f in self.findings],
            "test_seed": bool(self.public_seeds),
            **({} if outward else self.private_entries),
        }

    def _entry(self, gate: Gate, *, outward: bool) -> dict[str, Any]:
        """Return a gate as the manifest contains it."""
        entry = {name: getattr(gate, name) for name in GATE_FIELDS}
        return {**entry, "value": outward_value(gate, self.read) if outward else gate.value}


def canonical(document: Mapping[str, Any]) -> str:
    """Return the JSON text whose hash the manifest contains: sorted keys, no spaces, without that
    hash.
    """
    rest = {k: v for k, v in document.items() if k != "self_sha256"}
    return json.dumps(
        rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def sealed(document: Mapping[str, Any]) -> str:
    """Return the document as indented JSON with `self_sha256`, the hash of its canonical form."""
    seal = hashlib.sha256(canonical(document).encode()).hexdigest()
    return (
        json.dumps({**document, "self_sha256": seal}, indent=2, ensure_ascii=False, allow_nan=False)
        + "\n"
    )


def contents(folder: Path) -> tuple[set[str], set[str]]:
    """Return the relative names of a folder's regular files, and of all else: links, pipes, empty
    folders.
    """
    regular = set[str]()
    other = set[str]()

    def stop(error: OSError) -> None:
        raise error

    for root, folders, names in os.walk(folder, onerror=stop):
        at = Path(root)
        paths = [at / name for name in (*folders, *names)]
        if not paths and at != folder:
            other.add(at.relative_to(folder).as_posix())
        for path in paths:
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                regular.add(path.relative_to(folder).as_posix())
            elif not stat.S_ISDIR(mode):
                other.add(path.relative_to(folder).as_posix())
    return regular, other


def released_files(folder: Path, executor: Callable[..., Iterable[str]] = map) -> dict[str, str]:
    """Return the SHA-256 of all regular files of a release except the list of sums.

    executor: map that reads them.
    """
    names = sorted(contents(folder)[0] - {SUMS})
    return dict(zip(names, executor(sha256, [folder / name for name in names]), strict=True))


def write_sums(folder: Path, executor: Callable[..., Iterable[str]] = map) -> None:
    """Write `SHA256SUMS` in the format of `sha256sum --check`; `executor`: reads the files."""
    (folder / SUMS).write_text(_sums(released_files(folder, executor)), encoding="utf-8")


def _sums(files: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in files.items())


def write_companions(
    folder: Path,
    card: str,
    report: str,
    account: Account,
    executor: Callable[..., Iterable[str]] = map,
) -> dict[str, str]:
    """Write card, report, signed manifest and sums. Returns the SHA-256 of the files that the
    manifest lists.
    """
    (folder / CARD).write_text(card, encoding="utf-8")
    (folder / REPORT).write_text(report, encoding="utf-8")
    listed = released_files(folder, executor)
    manifest = sealed(account.manifest(listed, outward=True)).encode()
    (folder / NAME).write_bytes(manifest)
    (folder / SIGNATURE).write_bytes(account.signer.sign(manifest))
    (folder / PUBLIC_KEY).write_bytes(account.signer.public_pem)
    write_sums(folder, executor)
    return listed


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one verification step."""

    name: str
    passed: bool
    detail: str = ""


def verify(folder: Path, public_key: str | Path | None = None) -> list[Check]:
    """Run all checks of a release folder.

    Args:
        public_key: the custodian's public key, a PEM file or its fingerprint ("SHA256:…"), received
            by another way than the release. Without it, anyone could have made and signed the
            release.

    Raises:
        InputError: the folder does not exist or is no release, or the public key cannot be read.
    """
    trusted = None if public_key is None else _fingerprint(str(public_key), folder)
    if not folder.is_dir():
        refused = (folder.parent / "vault" / "report.html").is_file()
        state = read_json(folder.parent / "vault" / STATE)
        if isinstance(state, dict) and isinstance(state.get("withdrawn"), dict):
            date = state["withdrawn"].get("date")
            raise InputError(
                f"was withdrawn on {date}",
                where=folder.name,
                hint="clinveil verify OUT/vault checks the record of it",
            )
        hint = "the run was refused; see OUT/vault/report.html" if refused else "pass OUT/release"
        raise InputError(
            "does not exist" if refused else "is not a release folder", where=folder.name, hint=hint
        )
    if (folder / "key.bin").is_file():
        raise InputError("is the vault of a release", where=folder.name, hint="pass OUT/release")
    document = read_json(folder / NAME)
    manifest = document if isinstance(document, dict) and document.get("schema") == SCHEMA else None
    missing = [name for name in COMPANIONS if not (folder / name).is_file()]
    if missing:
        hint = (
            "; pass OUT/release"
            if (folder / "release").is_dir() or (folder / "out").is_dir()
            else ""
        )
        return [Check("all files are present", False, "missing: " + ", ".join(missing) + hint)]
    if manifest is None:
        return [Check("the manifest can be read", False, f"it is not {SCHEMA}")]
    try:
        checks = [Check("all files are present", True), *_file_checks(folder, manifest)]
        if all(check.passed for check in checks):  # otherwise the notes could be a pipe or a link
            checks.append(_rows(folder, manifest))
        return [*checks, *_manifest_checks(folder, manifest, trusted)]
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError):
        # A manifest of unknown origin may contain anything.
        return [Check("the manifest and the list of sums are valid", False, "they are damaged")]


def _fingerprint(public_key: str, folder: Path) -> str:
    hint = (
        "pass the key file, or its fingerprint (SHA256: and 43 characters), that the custodian sent"
        " by another route"
    )
    if re.fullmatch(r"SHA256:[A-Za-z0-9+/]{43}", public_key):
        return public_key
    if public_key.startswith("SHA256:"):
        raise InputError("is not a complete fingerprint", where="--public-key", hint=hint)
    if folder.resolve() in Path(public_key).resolve().parents:
        raise InputError(
            "is a file of the release itself, which proves nothing", where="--public-key", hint=hint
        )
    try:
        return fingerprint_of(Path(public_key).read_bytes())
    except OSError:
        raise InputError("there is no such file", where="--public-key", hint=hint) from None
    except ValueError:
        raise InputError(
            "is not an Ed25519 public key", where=Path(public_key).name, hint=hint
        ) from None


def _file_checks(folder: Path, manifest: dict[str, Any]) -> Iterator[Check]:
    """Compare the set of files, folders and links with the list of sums and with the manifest."""
    lines = (folder / SUMS).read_text(encoding="utf-8")
    summed = {
        name: digest for digest, _, name in (line.partition("  ") for line in lines.splitlines())
    }
    _, other = contents(folder)
    found = released_files(folder)
    named: dict[str, str] = manifest["files"]
    listed = {*named, NAME, *SIGNED}
    wrong = {*(found.keys() ^ listed), *(found.keys() ^ summed.keys()), *other}
    yield Check("the folder contains exactly the listed files", not wrong, _names(sorted(wrong)))
    changed = sorted(n for n in found.keys() & summed.keys() if found[n] != summed[n])
    yield Check(
        "the hashes agree", not changed and bool(wrong or lines == _sums(found)), _names(changed)
    )
    moved = sorted(name for name in named if found.get(name) != named[name])
    notes = any(Path(name).parts[0] == manifest["notes"]["file"] for name in named)
    yield Check("the manifest lists the released files", notes and not moved, _names(moved))


def _manifest_checks(
    folder: Path, manifest: dict[str, Any], trusted: str | None
) -> Iterator[Check]:
    seal = hashlib.sha256(canonical(manifest).encode()).hexdigest()
    yield Check("the manifest is unchanged", seal == manifest.get("self_sha256"))
    yield _signature(folder, manifest, trusted)
    gates = manifest["gates"]
    summary = tally(str(g["outcome"]) for g in gates)
    held = bool(gates) and all(g["passed"] for g in gates)
    yield Check(f"it may leave ({manifest['audience']})", held, summary)
    yield Check("no test seed", not manifest["test_seed"])


def _signature(folder: Path, manifest: dict[str, Any], trusted: str | None) -> Check:
    """Check the signature, and whose it is if the fingerprint of a trusted key is given."""
    pem = (folder / PUBLIC_KEY).read_bytes()
    fingerprint = fingerprint_of(pem)
    valid = signature_agrees(pem, (folder / SIGNATURE).read_bytes(), (folder / NAME).read_bytes())
    valid = valid and fingerprint == manifest["signing_key"] and pem == canonical_pem(pem)
    if trusted is None:
        detail = f"signed by {fingerprint}; not checked whose key this is: pass --public-key"
        return Check("signature", valid, detail if valid else "does not agree")
    agrees = valid and fingerprint == trusted
    advice = "" if agrees else "; do not use this release, and ask the custodian"
    return Check("signature of the given key", agrees, f"signed by {fingerprint}{advice}")


def _rows(folder: Path, manifest: dict[str, Any]) -> Check:
    what = "the notes have the columns and rows of the manifest"
    notes = manifest["notes"]
    if Path(notes["file"]).name != notes["file"]:
        return Check(what, False, "it refers to notes outside the release")
    try:
        rows = 0
        settings = NotesSettings(
            text=notes["text"], id=notes["id"], patient=notes["patient"], preset="none"
        )
        for batch in open_corpus(
            folder / notes["file"], settings, keep=tuple(notes["keep"])
        ).batches():
            rows += batch.num_rows
    except ClinveilError as error:
        return Check(what, False, error.problem)
    return Check(what, rows == notes["rows"], f"{rows:,} rows")


def _names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
