"""Build the report record and the manifest entries of a run."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from clinveil.core import LABELS, Finding, SigningKey, content_of, fingerprint
from clinveil.corpus import Columns
from clinveil.phi import covered_labels
from clinveil.releases.attack_gates import KEPT_UNIQUE
from clinveil.releases.context import hashing
from clinveil.releases.manifest import Account, NotesFile
from clinveil.releases.producer import Product
from clinveil.releases.settings import ReleaseSettings
from clinveil.report import (
    Column,
    CorpusFacts,
    Fact,
    PhiCount,
    ReleaseRecord,
    Verdict,
    outward_count,
    outward_facts,
)

TITLE = "Release of clinical notes"


def account_of(
    product: Product, verdicts: Sequence[Verdict], findings: Sequence[Finding]
) -> Account:
    """Return the record of a run for both manifests."""
    job = product.job
    columns = product.columns
    rows = product.rows
    signing_key = job.settings.signing_key
    account = Account(
        kind=job.settings.kind,
        key=job.key,
        notes=NotesFile(
            file=product.path.name,
            rows=rows.written,
            text=columns.text,
            id=columns.note_id,
            patient=columns.patient_id,
            keep=columns.keep,
        ),
        read=rows.read,
        settings=public_settings(job.settings),
        verdicts=verdicts,
        findings=findings,
        public_seeds=product.public_seeds(),
        private_entries=_private_entries(product),
        nth=job.nth,
        signing_key=SigningKey.load(signing_key) if signing_key else None,
    )
    return replace(account, entries={"run": account.run, **_entries(product)})


def _entries(product: Product) -> dict[str, Any]:
    job = product.job
    rows = product.rows
    skipped = {reason: outward_count(n, "notes") for reason, n in rows.skipped.items()}
    # The number of rows read would disclose a hidden number of skipped rows.
    read = rows.read if skipped == dict(rows.skipped) else None
    return {
        "columns": {
            column.name: column.disposition
            for column in dispositions(job.settings.kind, job.corpus.columns)
        },
        "accounting": {"read": read, "written": rows.written, "skipped": skipped},
        **product.manifest_entries(),
        **({"reuses": {"run": job.reused.run, "nth": job.nth}} if job.reused else {}),
        "vault_digests": dict(product.digests),
        "seed": job.seeds["measuring"],
        "determinism": {
            stage.name: stage.determinism for stage in job.timer.rows if stage.determinism
        },
    }


def _private_entries(product: Product) -> dict[str, Any]:
    """Return all counts in full, and entries for the custodian only."""
    job = product.job
    rows = product.rows
    values = job.settings.named_values()
    files = {
        name: content_of(values[name])
        for name, one in job.settings.declared().items()
        if one.affects == "treatment" and one.declared.secret == "path" and values[name]
    }
    private = {
        "source_sha256": job.source_sha256,
        "settings_in_full": job.settings.model_dump(mode="json"),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "seeds": dict(job.seeds),
        "seconds": {stage.name: stage.seconds for stage in job.timer.rows},
        "files_sha256": files,
    }
    counts = {"read": rows.read, "written": rows.written, "skipped": dict(rows.skipped)}
    return {"accounting": counts, "private": private}


def public_settings(settings: ReleaseSettings) -> dict[str, Any]:
    """Return the settings that a recipient may see: those of the kind, without paths of the
    custodian.
    """
    record = settings.record()
    shown: dict[str, Any] = {}
    for one in settings.of_kind():
        if one.affects == "call" or one.declared.secret == "value":
            continue
        if one.declared.secret == "path":
            shown[f"{one.name}_given"] = record[one.name] not in (None, [])
        else:
            shown[one.name] = record[one.name]
    return shown


TEXTS = {
    "obfuscated": "text, every word replaced",
    "deidentified": "text, identifiers replaced",
    "synthetic": "text, written by a language model",
}


def dispositions(kind: str, columns: Columns) -> tuple[Column, ...]:
    """Return each source column and its disposition."""
    new = kind == "synthetic"
    id_ = "note id, new numbers" if new else "note id, replaced by a random one"
    roles = {columns.note_id: id_, columns.text: TEXTS.get(kind, "text")}
    if columns.patient_id:
        roles[columns.patient_id] = (
            "patient id, new numbers" if new else "patient id, replaced by a random one"
        )
    kept = "drawn, values of the source" if new else "kept unchanged"
    roles |= {name: kept + (", label" if name in columns.labels else "") for name in columns.keep}
    dropped = [Column(name, "dropped") for name in columns.dropped]
    if columns.other_dropped:
        dropped.append(Column(f"{columns.other_dropped} more", "dropped"))
    return (*(Column(n, d) for n, d in roles.items()), *dropped)


def record_of(
    product: Product,
    account: Account,
    skipped: tuple[str, ...],
    excerpts: Sequence[str],
) -> ReleaseRecord:
    """Return the record of the report."""
    job = product.job
    return ReleaseRecord(
        title=TITLE,
        run=account.run,
        created=account.created,
        version=version("clinveil"),
        kind=job.settings.kind,
        about=product.about,
        excerpts=tuple(excerpts),
        corpus=_corpus_facts(product, account.findings),
        accounting=product.accounting(),
        verdicts=tuple(account.verdicts),
        findings=tuple(account.findings),
        phi=_phi(product),
        settings=outward_facts(
            Fact(name, _shown(value)) for name, value in public_settings(job.settings).items()
        ),
        provenance=outward_facts(_provenance(product)),
        warnings=_warnings(product, account.findings),
        skipped=skipped,
        signing_key=account.signer.fingerprint,
        test_seed=job.key.test_seed is not None,
        recipient=job.settings.recipient,
        purpose=job.settings.purpose,
        review_on=job.settings.review_on,
        listed=_listed(product, account.findings),
        earlier=tuple(f"{one.entry.run} ({one.entry.kind})" for one in job.earlier),
        reuses=job.reused.run if job.reused else "",
    )


def _corpus_facts(product: Product, findings: Sequence[Finding]) -> CorpusFacts:
    """Return the data in numbers."""
    job = product.job
    rows = product.rows
    lost = rows.read - rows.written - rows.skipped.total()
    samples = "; ".join(sorted({finding.sample for finding in findings if finding.sample}))
    return CorpusFacts(
        read=rows.read - min(lost, 0),
        notes=rows.written,
        patients=product.patients if job.corpus.columns.patient_id else None,
        tokens=product.tokens,
        types=product.types,
        skipped=dict(rows.skipped + Counter({"unaccounted for": max(lost, 0)})),
        columns=dispositions(job.settings.kind, job.corpus.columns),
        more=outward_facts(
            (
                *product.facts(),
                *([Fact("reuses the key of release", job.reused.run)] if job.reused else []),
                *([Fact("attacks and utility were measured on", samples)] if samples else []),
                *(
                    Fact(f"notes with numeric dates, {order}", n, "notes")
                    for order, n in sorted(job.date_orders.items())
                ),
            )
        ),
    )


def _listed(product: Product, findings: Sequence[Finding]) -> float | None:
    """Return the share of the patients that the known-patient list has; None without a list."""
    own = next((f for f in findings if f.measure == "attack.own_name"), None)
    if own is None or own.known_list is None or not product.patients:
        return None
    return min(1.0, own.known_list.in_release / product.patients)


def _shown(value: Any) -> Any:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else value


def _phi(product: Product) -> tuple[PhiCount, ...] | None:
    if (found := product.identifiers) is None:
        return None
    policy = product.job.settings.identifiers.policy()
    covered = covered_labels()
    treatment = {
        label: policy.describe(label) if label in covered else "no detector for it"
        for label in LABELS
    }
    return tuple(
        PhiCount(label, what, found[label], treatment[label]) for label, what in LABELS.items()
    )


def _provenance(product: Product) -> tuple[Fact, ...]:
    job = product.job
    return (
        Fact(
            "released notes (SHA-256)",
            fingerprint(product.path, hashing(job.settings, job.executor)),
        ),
        Fact("key commitment (SHA-256)", job.key.commitment),
        *(Fact(f"{name} (SHA-256)", digest) for name, digest in product.digests.items()),
        Fact("measuring seed", job.seeds["measuring"]),
        Fact("clinveil", version("clinveil")),
        Fact("Python", platform.python_version()),
        Fact("randomness of the release", "SipHash-2-4 and BLAKE2b, keyed"),
    )


def _warnings(product: Product, findings: Sequence[Finding]) -> tuple[str, ...]:
    job = product.job
    synthetic = product.job.settings.kind == "synthetic"
    lines = list[str]()
    if job.corpus.columns.patient_id is None:
        lines.append(
            "The source has no patient ids. Each note counts as a patient, so words of one person"
            " with many notes pass the rare-word floor, and intervals are too narrow."
        )
    if job.settings.identifiers.language == "any":
        lines.append(
            "The notes were not checked for English (language=any). The detectors know English"
            " only: identifiers in notes in other languages remain."
        )
    lines += product.warnings(findings)
    for one in job.earlier:
        overlap = (
            f"{one.description} of the notes were released before under another key, in"
            f" {one.entry.kind} release"
        )
        lines.append(f"{overlap} {one.entry.run}. {one.disclosed(job.settings.kind)}")
    lines += [] if synthetic else _feed_warnings(findings, product.patients)
    if product.columns.keep and not synthetic:
        lines.append(singled_out(findings, KEPT_UNIQUE, *KEPT))
    if job.facts and product.columns.patient_id:
        lines.append(
            f"The release has {len(job.facts)} parts, like its source: notes of one source part,"
            " for example of one year or ward, are in one released part."
        )
    return tuple(lines)


def _feed_warnings(findings: Sequence[Finding], patients: int) -> list[str]:
    own = {
        f.measure.removeprefix("attack.own_"): f
        for f in findings
        if f.measure.startswith("attack.own_")
    }
    if not own:
        return [
            "No known-patient list was given, so the notes were not searched for patients' own"
            " identifiers."
        ]
    missing = [name.replace("_", " ") for name, finding in own.items() if finding.value is None]
    lines = (
        [f"Not searched for, because the known-patient list has none: {', '.join(missing)}."]
        if missing
        else []
    )
    if "name" not in own:
        return lines
    matched = own["name"].known_list
    known = matched.in_release if matched else 0
    if 2 * known < patients:
        lines.append(
            f"The known-patient list has {known / patients:.0%} of the patients; the others were"
            " not checked."
        )
    if own["name"].control == 0:
        lines.append(
            "No known patient's full name occurs in their source notes: check that the list is of"
            " these patients."
        )
    return lines


KEPT = (
    "Kept columns are released unchanged, without identifier treatment:",
    "have values of a single patient",
)


def singled_out(findings: Sequence[Finding], measure: str, subject: str, alone: str) -> str:
    """Return a warning with the share of notes that have unique values in kept columns."""
    share = next((f.value for f in findings if f.measure == measure and f.value is not None), 0.0)
    some = f"{share:.1%}" if share >= 0.001 or not share else "fewer than 0.1%"
    return f"{subject} {some} of the notes {alone}."
