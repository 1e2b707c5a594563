"""Publish a run, or refuse it: reports, card, manifests, sums; the release appears in one rename, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clinveil.core.files import private_text
from clinveil.core.finding import write_findings
from clinveil.release.beside import demo_beside
from clinveil.release.folder import Places
from clinveil.release.manifest import NAME, released_files, sealed, write_companions
from clinveil.release.record import Account, full_manifest, manifest_of
from clinveil.report.card import render_card
from clinveil.report.edition import external_edition
from clinveil.report.record import Gate, ReleaseRecord, score
from clinveil.report.render import render, write_report
from clinveil.report.stored import to_json

RECORD = "record.json"


@dataclass(frozen=True)
class Outcome:
    """How a run ended: where things are, and which gates failed."""

    folder: Places
    gates: tuple[Gate, ...]

    @property
    def refused(self) -> bool:
        """Whether nothing was released."""
        return not all(gate.passed for gate in self.gates)

    def summary(self) -> Iterator[str]:
        """Lines for people."""
        failed = [gate for gate in self.gates if not gate.passed]
        yield score(self.gates)
        for gate in failed:
            yield f"FAILED  {gate.name}: {gate.value} {gate.unit} (allowed: {gate.threshold}). {gate.remedy}"
        if not failed:
            yield f"report   {self.folder.release / 'report.html'}"
            yield f"release  {self.folder.release}"
        yield f"vault    {self.folder.vault} (never leaves; start with report.html)"


def publish(account: Account, record: ReleaseRecord) -> Outcome:
    """Write everything that a run leaves behind, and let the release appear if all gates passed.

    A release with a test seed is kept in `vault/refused/`; of one that failed another gate only the evidence is kept.
    """
    folder, outcome = account.job.folder, Outcome(account.job.folder, tuple(account.gates))
    notes = released_files(folder.staging)
    outward = external_edition(record, demo_beside(account.job.settings))
    (folder.staging / "report.html").write_text(render(outward), encoding="utf-8")
    write_companions(folder.staging, render_card(outward), manifest_of(account, notes))
    private_text(folder.vault / NAME, sealed(full_manifest(account, notes)))
    private_text(folder.vault / RECORD, json.dumps({"internal": to_json(record), "external": to_json(outward)}))
    write_report(record, folder.vault / "report.html")
    write_findings(folder.vault / "findings.json", "release", account.findings, seed=account.seeds["measuring"])
    if not outcome.refused:
        _open_up(folder.staging)
        folder.staging.replace(folder.release)
    elif account.job.key.test_seed is not None:
        folder.staging.replace(folder.refused)
    folder.run.finish("refused" if outcome.refused else "finished")
    return outcome


def _open_up(release: Path) -> None:
    """What may leave is readable like any other file."""
    for item in [release, *release.rglob("*")]:
        item.chmod(0o755 if item.is_dir() else 0o644)
