"""Folders of a run, and its last step: write reports, card, manifests and sums, and publish the
release atomically.

`OUT/vault/` contains all secrets; `OUT/release/` exists only if all gates passed. Temporary text is
in `OUT/vault/work/`, which is removed at exit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from clinveil.core.errors import InputError
from clinveil.core.files import private_text, read_json, refuse_existing, refuse_nested, remove
from clinveil.core.finding import Finding, write_findings
from clinveil.core.runfolder import Kind, RunFolder
from clinveil.corpus.held_out import TABLE
from clinveil.phi.treatment.records import RESIDUES
from clinveil.releases.earlier.ledger import IN_VAULT
from clinveil.releases.manifest import NAME, Account, sealed, write_companions
from clinveil.report.edition import external_edition
from clinveil.report.record import Gate, ReleaseRecord, from_json, tally, to_json
from clinveil.report.render import release_card, render, write_report

RECORD = "record.json"
EARLIER = "earlier"
NEW_ALONE = "findings-new.json"
LEARNT = "learnt.json"  # the parts that vectors or model were trained on
_MADE: tuple[str, ...] = (
    "vectors",
    "neighbours",
    "channel",
    "crosswalk.parquet",
    "alignment.parquet",
    "manifest.json",
)
_MADE += (
    "tasks",
    LEARNT,
    RESIDUES,
    IN_VAULT,
    "record.json",
    "findings.json",
    "report.html",
    "report-external.html",
)
_MADE += (TABLE, f"{EARLIER}.parquet", NEW_ALONE, "model", "training.safetensors")
KIND = Kind(
    what="release run",
    vault="vault",
    own=frozenset(f"vault/{name}" for name in _MADE),
    scratch=("vault/work", "vault/staging"),
    stale=("release", "vault/refused"),
    costly=frozenset({"vault/vectors", "vault/model", "vault/tasks"}),
)


class Places:
    """Folders of one run.

    Attributes:
        release: may leave. vault: must never leave. work: temporary text, removed at exit.
        staging: the unfinished release. refused: a finished release with a test seed.
    """

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.vault = run.vault
        self.release = run.root / "release"
        self.work, self.staging, self.refused = (
            run.vault / name for name in ("work", "staging", "refused")
        )


@dataclass(frozen=True)
class Outcome:
    """Result of a run: folders, gates and findings.

    Attributes:
        kind: of release. excerpts: passages of released text; empty if refused.
    """

    folder: Places
    gates: tuple[Gate, ...] = field(repr=False)
    findings: tuple[Finding, ...] = field(repr=False)
    kind: str = "obfuscated"
    excerpts: tuple[str, ...] = field(default=(), repr=False)

    @property
    def refused(self) -> bool:
        """Whether a gate failed, so that nothing was released."""
        return not all(gate.passed for gate in self.gates)

    def summary(self) -> Iterator[str]:
        """Yield the summary as lines of text."""
        failed = [gate for gate in self.gates if not gate.passed]
        yield tally(gate.outcome for gate in self.gates)
        if off := [gate.name for gate in self.gates if gate.switched_off]:
            yield f"Switched off: {', '.join(off)}"
        for gate in failed:
            value, most = (
                f"{x:.3g}" if isinstance(x, float) else x for x in (gate.value, gate.threshold)
            )
            yield f"FAILED  {gate.name}: {value} {gate.unit} (allowed: {most}). {gate.hint}"
        if not failed:
            yield f"report   {self.folder.release / 'report.html'}"
            yield f"release  {self.folder.release} ({self.kind})"
        yield f"vault    {self.folder.vault} (must not leave; contains the full report.html)"


def finish(
    folder: Places,
    account: Account,
    record: ReleaseRecord,
    enter: Callable[[], None],
    over: Callable[..., Iterable[str]],
) -> Outcome:
    """Write all results of a run, and publish the release if all gates passed.

    A release with a test seed is kept in `vault/refused/`; after another failed gate only the
    evidence is kept.

    Args:
        record: internal edition. enter: adds the release to the ledger just before it is published.
        over: map that reads the files of the release.
    """
    outcome = Outcome(folder, tuple(account.gates), tuple(account.findings), account.kind)
    leaves = () if outcome.refused else record.excerpts
    outcome = replace(outcome, excerpts=leaves)
    outward = external_edition(record)
    card = release_card(outward, account.notes.file)
    report = render(outward)
    files = write_companions(folder.staging, card, report, account, over)
    private_text(folder.vault / NAME, sealed(account.manifest("internal", files)))
    private_text(
        folder.vault / RECORD,
        json.dumps({"internal": to_json(record), "external": to_json(outward)}),
    )
    write_report(record, folder.vault / "report.html")
    write_findings(
        folder.vault / "findings.json", "release", account.findings, seed=account.entries["seed"]
    )
    if not outcome.refused:
        enter()
        for item in [folder.staging, *folder.staging.rglob("*")]:  # normal permissions
            item.chmod(0o755 if item.is_dir() else 0o644)
        folder.staging.replace(folder.release)
    elif account.public_seeds:
        folder.staging.replace(folder.refused)
    remove(folder.vault / "tasks")  # finished parts, only needed to resume
    folder.run.finish("refused" if outcome.refused else "finished")
    return outcome


def rerender_report(run: Path, out: Path | None, *, edition: str, force: bool) -> Path:
    """Write the report of one edition and return its path. Raises InputError for a missing or
    damaged record.
    """
    place = run / KIND.vault / RECORD
    if not place.is_file():
        raise InputError(
            "contains no record of a run", where=run.name, hint="pass the OUT of a release"
        )
    target = out or run / "vault" / f"report{'-external' if edition == 'external' else ''}.html"
    refuse_nested(OUT=target, the_release=run / "release")
    refuse_existing(target, force=force or out is None)
    stored = read_json(place)
    record = stored.get(edition) if isinstance(stored, dict) else None
    write_report(from_json(record, f"{run.name}/{KIND.vault}/{RECORD}"), target)
    return target
