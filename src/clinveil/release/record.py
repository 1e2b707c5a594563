"""The record of a run: what the reports show and what both manifests say."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from clinveil.channel.channel import Channel
from clinveil.channel.tally import Tally
from clinveil.core.finding import Finding
from clinveil.core.spans import LABELS
from clinveil.corpus.corpus import Accounting, Columns
from clinveil.phi.detector import covered as covered_labels
from clinveil.release.manifest import SCHEMA, public_settings
from clinveil.release.measure import NOT_TRIED
from clinveil.release.stages import Job
from clinveil.report.edition import outward_count, outward_finding, outward_value
from clinveil.report.record import (
    AlignedNote,
    Column,
    CorpusFacts,
    Fact,
    Gate,
    PhiCount,
    Plain,
    ReleaseRecord,
    StageRow,
    TokenRow,
)
from clinveil.vectors.count import WordCounts

TITLE = "Release of clinical notes"


@dataclass
class Account:
    """What a run has to tell, gathered as it goes."""

    job: Job
    rows: Accounting
    counts: WordCounts
    channel: Channel
    tally: Tally
    found: Counter[str] | None
    gates: Sequence[Gate]
    findings: Sequence[Finding]
    stages: Sequence[StageRow]
    digests: Mapping[str, str]
    seeds: Mapping[str, int]
    source_sha256: str
    notes_sha256: str
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def run(self) -> str:
        """A name for the run that says nothing of its notes."""
        return f"{self.created[:10]}-{self.job.key.commitment[:8]}"


def token_rows(tally: Tally) -> tuple[TokenRow, ...]:
    """The token accounting, by class; the denominator is everything but white space."""
    return (
        TokenRow(
            "words",
            tally.words,
            replaced=tally.replaced,
            dropped=tally.dropped,
            kept=tally.kept_words,
            unknown=tally.unknown,
            self_replaced=tally.self_replaced,
        ),
        TokenRow("numbers", tally.numbers, masked=tally.masked, dropped=tally.numbers - tally.masked),
        TokenRow("punctuation", tally.punct, kept=tally.copied, dropped=tally.punct - tally.copied),
        TokenRow("other", tally.other, dropped=tally.other),
    )


def dispositions(columns: Columns) -> tuple[Column, ...]:
    """What became of each source column."""
    roles = {columns.note_id: "note id, replaced by a random one", columns.text: "text, every word replaced"}
    if columns.patient_id:
        roles[columns.patient_id] = "patient id, replaced by a random one"
    roles |= {name: "kept as it is" + (", label" if name in columns.labels else "") for name in columns.keep}
    dropped = [Column(name, "dropped") for name in columns.dropped]
    if columns.other_dropped:
        dropped.append(Column(f"{columns.other_dropped} more", "dropped"))
    return (*(Column(n, d) for n, d in roles.items()), *dropped)


def record_of(account: Account, notes: Sequence[AlignedNote]) -> ReleaseRecord:
    """The internal edition: what a report of this run shows."""
    job, counts = account.job, account.counts
    rows = account.rows
    lost = rows.read - rows.written - rows.skipped.total()
    facts = CorpusFacts(
        read=rows.read - min(lost, 0),
        notes=rows.written,
        patients=counts.n_patients if job.corpus.columns.patient_id else None,
        tokens=counts.n_tokens,
        types=len(counts),
        skipped=dict(rows.skipped + Counter({"unaccounted for": max(lost, 0)})),
        columns=dispositions(job.corpus.columns),
        more=(
            Fact("words that may come out", int(account.channel.eligible.sum())),
            Fact("words seen in too few patients to come out", int((~account.channel.eligible).sum())),
            *_kept(account),
        ),
    )
    return ReleaseRecord(
        title=TITLE,
        edition="internal",
        run=account.run,
        created=account.created,
        version=version("clinveil"),
        corpus=facts,
        accounting=token_rows(account.tally),
        gates=tuple(account.gates),
        findings=tuple(account.findings),
        phi=_phi(account),
        notes=tuple(notes),
        stages=tuple(account.stages),
        settings=tuple(Fact(k.replace("_", " "), _shown(v)) for k, v in public_settings(job.settings).items()),
        provenance=_provenance(account),
        warnings=_warnings(account),
        not_tried=NOT_TRIED,
        test_seed=job.key.test_seed is not None,
    )


def _kept(account: Account) -> list[Fact]:
    """The words left as they are on request: their number for everybody, the words for the vault."""
    kept = sorted(account.channel.kept)
    if not account.job.settings.channel.keep_words:
        return []
    return [Fact("words kept as they are", len(kept)), Fact("which words", ", ".join(kept), internal=True)]


def _shown(value: Any) -> Any:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else value


def _phi(account: Account) -> tuple[PhiCount, ...] | None:
    if account.found is None:
        return None
    treated = {
        "replace": "replaced by a surrogate, or a tag where none can be made",
        "remove": "removed",
        "tag": "tagged",
    }[account.job.settings.identifiers.mode]
    covered = covered_labels()
    return tuple(
        PhiCount(label, what, account.found[label], treated if label in covered else "no detector for it")
        for label, what in LABELS.items()
    )


def _provenance(account: Account) -> tuple[Fact, ...]:
    facts = [Fact("released notes (SHA-256)", account.notes_sha256)]
    facts += [Fact("key commitment (SHA-256)", account.job.key.commitment)]
    facts += [Fact(f"{name} (SHA-256)", digest) for name, digest in account.digests.items()]
    facts += [Fact(f"{name} seed", seed, internal=name == "training") for name, seed in account.seeds.items()]
    facts += [
        Fact("source notes (SHA-256)", account.source_sha256, internal=True),
        Fact("clinveil", version("clinveil")),
        Fact("Python", platform.python_version()),
        Fact("randomness of the release", "SipHash-2-4 and BLAKE2b, keyed"),
    ]
    return tuple(facts)


def _warnings(account: Account) -> tuple[str, ...]:
    job, settings, said = account.job, account.job.settings, []
    if account.job.corpus.columns.patient_id is None:
        said.append("The source names no patients: each note was taken for a patient of its own, so a word that one")
        said[-1] += " person's many notes repeat counts as a word of many, and intervals are too narrow."
    said += _feed_warnings(account)
    if not settings.phi:
        said.append("PHI replacement was switched off: names entered the vocabulary.")
    if settings.channel.memo == "occurrence":
        said.append("Draws are fresh for each occurrence: what a patient's notes repeat can be intersected.")
    if settings.channel.layout == "keep":
        said.append(_singled_out(account, "attack.layout_unique", "Layout was kept:"))
    if job.corpus.columns.keep:
        said.append(_singled_out(account, "attack.kept_columns_unique", "Kept columns are passed as they are:"))
    if settings.order == "source":
        said.append("Rows stand in the order of the source: somebody who holds that order knows whose note is whose.")
    if settings.channel.keep_words:
        said.append(f"{account.tally.kept_words:,} words were left as they are on request; they are not protected.")
    return tuple(said)


def _feed_warnings(account: Account) -> list[str]:
    own = {f.measure.removeprefix("attack.own_"): f for f in account.findings if f.measure.startswith("attack.own_")}
    if not own:
        return ["No known-patient feed was given: no patient's own identifiers could be looked for in their notes."]
    missing = [name.replace("_", " ") for name, finding in own.items() if finding.value is None]
    said = [f"Not looked for, because the feed holds none that could be: {', '.join(missing)}."] if missing else []
    known, patients = int(own["name"].detail.get("in_release") or 0), account.counts.n_patients
    if 2 * known < patients:
        said.append(f"The feed knows {known / patients:.0%} of the patients: nothing is known of the others.")
    if own["name"].control == 0:
        said.append("No known patient's own full name stands in their source notes: is the feed of these patients?")
    return said


def _singled_out(account: Account, measure: str, what: str) -> str:
    share = next((f.value for f in account.findings if f.measure == measure and f.value is not None), 0.0)
    some = f"{share:.1%}" if share >= 0.001 or not share else "fewer than 0.1%"
    return f"{what} {some} of the notes are the only ones with theirs."


def manifest_of(account: Account, files: Mapping[str, str]) -> dict[str, Any]:
    """The public manifest, without what the external report hides; `files` are the released notes with their hashes."""
    rows, skipped = account.rows, account.rows.skipped
    told = {reason: outward_count(n, "notes") for reason, n in skipped.items()}
    # How many were read tells how many were left out.
    read = rows.read if told == dict(skipped) else None
    return _manifest(account, files) | {
        "accounting": {"read": read, "written": rows.written, "skipped": told},
        "gates": [_gate(g, outward_value(g, rows.read)) for g in account.gates],
        "findings": [outward_finding(finding) for finding in account.findings],
    }


def _gate(gate: Gate, value: Plain) -> dict[str, Plain]:
    said = {name: getattr(gate, name) for name in ("name", "passed", "outcome", "threshold", "power")}
    return said | {"value": value}


def _manifest(account: Account, files: Mapping[str, str]) -> dict[str, Any]:
    """What the vault's manifest says beside its private part."""
    columns = account.job.corpus.columns
    return {
        "schema": SCHEMA,
        "tool": "clinveil",
        "version": version("clinveil"),
        "run": account.run,
        "created": account.created,
        "settings": public_settings(account.job.settings),
        "notes": {
            "file": f"notes{account.job.corpus.suffix}",
            "rows": account.rows.written,
            "text": columns.text,
            "id": columns.note_id,
            "patient": columns.patient_id,
            "keep": list(columns.keep),
        },
        "columns": {column.name: column.disposition for column in dispositions(columns)},
        "accounting": {"read": account.rows.read, "written": account.rows.written, "skipped": account.rows.skipped},
        "tokens": account.tally.as_dict(),
        "files": dict(files),
        "key_commitment": account.job.key.commitment,
        "vault_digests": dict(account.digests),
        "seed": account.seeds["measuring"],
        "determinism": {stage.name: stage.determinism for stage in account.stages if stage.determinism},
        "gates": [_gate(g, g.value) for g in account.gates],
        "findings": [finding.as_dict() for finding in account.findings],
        "test_seed": account.job.key.test_seed is not None,
    }


def full_manifest(account: Account, files: Mapping[str, str]) -> dict[str, Any]:
    """The manifest of the vault: the public one with every count in full, and with what only the custodian may know."""
    private = {
        "source_sha256": account.source_sha256,
        "settings_in_full": account.job.settings.flat(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "seeds": dict(account.seeds),
        "seconds": {stage.name: stage.seconds for stage in account.stages},
    }
    return _manifest(account, files) | {"edition": "internal", "private": private}
