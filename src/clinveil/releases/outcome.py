"""Folders of a run, and its last step: write reports, card, manifests and sums, and publish the
release atomically.

`OUT/vault/` contains all secrets; `OUT/release/` exists only if all gates passed. Temporary text is
in `OUT/vault/work/`, which is removed at exit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clinveil.core import (
    Finding,
    FolderKind,
    InputError,
    RunFolder,
    private_text,
    refuse_existing,
    refuse_nested,
    remove,
    write_findings,
)
from clinveil.corpus import TABLE
from clinveil.phi import RESIDUES
from clinveil.releases.earlier.ledger import IN_VAULT
from clinveil.releases.manifest import NAME, Account, sealed, write_companions
from clinveil.report import (
    AlignedNote,
    Gate,
    ReleaseRecord,
    Verdict,
    explanations,
    from_json,
    impact_assessment,
    overall,
    release_card,
    render,
    render_sample,
    to_json,
)

RECORD = "record.json"
REPORT = "report.html"
SAMPLE = "sample.html"
ASSESSMENT = "assessment.md"
FINDINGS = "findings.json"
AUDIT = "audit-0001.jsonl"  # of a withdrawal
LEARNT = "learnt.json"  # the parts that vectors or model were trained on
_MADE: tuple[str, ...] = (
    "vectors",
    "neighbours",
    "channel",
    "crosswalk.parquet",
    "manifest.json",
)
_MADE += (
    "tasks",
    LEARNT,
    RESIDUES,
    IN_VAULT,
    RECORD,
    FINDINGS,
    REPORT,
    SAMPLE,
    AUDIT,
)
_MADE += (TABLE, "model", "training.safetensors")
KIND = FolderKind(
    title="release run",
    vault="vault",
    outputs=frozenset(f"vault/{name}" for name in _MADE),
    scratch=("vault/work", "vault/staging"),
    stale=("release", "vault/refused", "vault/withdrawn"),
    costly=frozenset({"vault/vectors", "vault/model", "vault/tasks"}),
)


class RunPaths:
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
        verdicts: for the audience of the release, then for the other one.
        kind: of release. excerpts: passages of released text; empty if refused.
    """

    folder: RunPaths
    verdicts: tuple[Verdict, ...] = field(repr=False)
    findings: tuple[Finding, ...] = field(repr=False)
    kind: str = "obfuscated"
    excerpts: tuple[str, ...] = field(default=(), repr=False)

    @property
    def refused(self) -> bool:
        """Whether nothing may leave to the audience of the release, so that nothing was
        released.
        """
        return not self.verdicts[0].may_leave

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates with the limits of the audience of the release."""
        return self.verdicts[0].gates

    def summary(self) -> Iterator[str]:
        """Yield the summary as lines of text."""
        failed = [gate for gate in self.gates if not gate.passed]
        yield overall(self.verdicts)
        for gate in failed:
            value, most = (
                f"{x:.3g}" if isinstance(x, float) else x for x in (gate.value, gate.limit)
            )
            what = gate.meaning
            if gate.value is not None:
                what = f"{value} {gate.unit} (limit {most})"
            yield f"{gate.outcome.upper()} {gate.name}: {what.rstrip('.')}. {gate.hint}"
        yield f"report   {(self.folder.vault if failed else self.folder.release) / REPORT}"
        if not failed:
            yield f"release  {self.folder.release} ({self.kind})"
        yield f"vault    {self.folder.vault} (must not leave)"


def finish(
    folder: RunPaths,
    account: Account,
    record: ReleaseRecord,
    sample: Sequence[AlignedNote],
    enter: Callable[[], None],
    executor: Callable[..., Iterable[str]],
) -> Outcome:
    """Write all results of a run, and publish the release if all gates passed.

    A release with a test seed is kept in `vault/refused/`; after another failed gate only the
    evidence is kept.

    Args:
        sample: source notes with their released versions.
        enter: adds the release to the ledger just before it is published.
        executor: map that reads the files of the release.
    """
    outcome = Outcome(
        folder=folder,
        verdicts=tuple(account.verdicts),
        findings=tuple(account.findings),
        kind=account.kind,
        excerpts=() if record.refused else record.excerpts,
    )
    report = render(record)
    card = release_card(record, account.notes.file)
    files = write_companions(folder.staging, card, report, account, executor)
    private_text(folder.vault / NAME, sealed(account.manifest(files, outward=False)))
    private_text(folder.vault / RECORD, to_json(record))
    private_text(folder.vault / REPORT, report)
    if sample:
        private_text(folder.vault / SAMPLE, render_sample(sample, record.run))
    _write_findings(folder.vault / FINDINGS, account)
    if not outcome.refused:
        enter()
        _publish(folder)
    elif account.public_seeds:
        folder.staging.replace(folder.refused)
    remove(folder.vault / "tasks")  # finished parts, only needed to resume
    folder.run.finish("refused" if outcome.refused else "finished")
    return outcome


def _write_findings(path: Path, account: Account) -> None:
    described = explanations(account.findings)
    seed = account.entries["seed"]
    write_findings(path, "release", account.findings, seed=seed, measures=described)


def _publish(folder: RunPaths) -> None:
    """Turn staging into the release, with normal permissions."""
    for item in [folder.staging, *folder.staging.rglob("*")]:
        item.chmod(0o755 if item.is_dir() else 0o644)
    folder.staging.replace(folder.release)


def rerender_report(
    run: Path,
    out: Path | None,
    *,
    force: bool,
    as_assessment: bool = False,
    withdrawn: str = "",
) -> Path:
    """Write the report again from its record, and return its path.

    Args:
        as_assessment: write a data protection impact assessment instead.
        withdrawn: when and why the release was withdrawn, for the assessment.

    Raises:
        InputError: a missing or damaged record.
    """
    record = run / KIND.vault / RECORD
    if not record.is_file():
        raise InputError(
            "contains no record of a run", where=run.name, hint="pass the OUT of a release"
        )
    target = out or run / KIND.vault / (ASSESSMENT if as_assessment else REPORT)
    refuse_nested(OUT=target, the_release=run / "release")
    refuse_existing(target, force=force or out is None)
    try:
        text = record.read_text(encoding="utf-8")
    except ValueError:
        text = ""
    held = from_json(text, f"{run.name}/{KIND.vault}/{RECORD}")
    private_text(target, impact_assessment(held, withdrawn) if as_assessment else render(held))
    return target
