"""The record of a run: what the reports show of it, and what both manifests say."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from clinveil.channel.build import mechanism_of
from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import mechanisms
from clinveil.channel.policy import Policy
from clinveil.channel.tally import Tally
from clinveil.core.finding import Finding
from clinveil.core.runfolder import FREE
from clinveil.core.spans import LABELS
from clinveil.corpus.corpus import Accounting, Columns
from clinveil.phi.detector import covered as covered_labels
from clinveil.releases.added import ALONE, OnBoth, added_facts, added_warnings, adds_to, files_of, nth_of
from clinveil.releases.attack_gates import LINKAGE_WARNED, linkage_warnings, switched_off
from clinveil.releases.ledger import Earlier
from clinveil.releases.manifest import Account, NotesFile
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.stages import Job
from clinveil.report.edition import outward_count
from clinveil.report.record import (
    AlignedNote,
    Column,
    CorpusFacts,
    Fact,
    Gate,
    PhiCount,
    ReleaseRecord,
    StageRow,
    TokenRow,
)
from clinveil.vectors.count import WordCounts
from clinveil.vectors.imported import without_vector
from clinveil.vectors.table import Vectors

TITLE, GIVEN = "Release of clinical notes", "given, not trained on these notes"
# Settings that name a place on the custodian's machine; the public edition says only whether they were given.
_PLACES = ("patients", "phi_policy", "keep_words", "drop_words", "more_text", "start_vectors")
# How the run was called, not what it made.
_CALL = (*FREE, "ledger", "seed", "encoding", "max_note_bytes", "text", "id", "patient")


@dataclass(frozen=True)
class Obfuscation:
    """What was made, and how: what this producer alone has to tell."""

    job: Job
    rows: Accounting
    counts: WordCounts
    vectors: Vectors
    channel: Channel
    tally: Tally
    found: Counter[str] | None
    stages: Sequence[StageRow]
    digests: Mapping[str, str]
    seeds: Mapping[str, int]
    source_sha256: str
    notes_sha256: str
    earlier: Sequence[Earlier] = ()
    on_both: OnBoth = ALONE

    def account(self, gates: Sequence[Gate], findings: Sequence[Finding]) -> Account:
        """All that the run has to tell."""
        job, columns = self.job, self.job.corpus.columns
        notes = NotesFile(
            "notes" if job.facts else f"notes{job.corpus.suffix}",
            self.rows.written,
            columns.text,
            columns.note_id,
            columns.patient_id,
            columns.keep,
        )
        seeds = () if job.key.test_seed is None else ("notes",)
        shown, inside = self._told(), self._inside()
        settings = public_settings(job.settings)
        account = Account(job.key, notes, self.rows.read, settings, gates, findings, seeds, shown, inside)
        account = replace(account, nth=nth_of(job))
        return replace(account, told={"run": account.run, **shown})

    def _told(self) -> dict[str, Any]:
        job, rows, skipped = self.job, self.rows, self.rows.skipped
        told = {reason: outward_count(n, "notes") for reason, n in skipped.items()}
        # How many were read tells how many were left out.
        read = rows.read if told == dict(skipped) else None
        return {
            "columns": {column.name: column.disposition for column in dispositions(job.corpus.columns)},
            "accounting": {"read": read, "written": rows.written, "skipped": told},
            "tokens": self.tally.as_dict(),
            "vectors": {"from": origin(job), "passes": _passes(self), **_part(self)},
            "vault_digests": dict(self.digests),
            "seed": self.seeds["measuring"],
            "determinism": {stage.name: stage.determinism for stage in self.stages if stage.determinism},
            **adds_to(job, "external"),
        }

    def _inside(self) -> dict[str, Any]:
        """Every count in full, and what only the custodian may know."""
        private = {
            "source_sha256": self.source_sha256,
            "settings_in_full": self.job.settings.flat(),
            "platform": platform.platform(),
            "python": platform.python_version(),
            "seeds": dict(self.seeds),
            "seconds": {stage.name: stage.seconds for stage in self.stages},
            "files_sha256": files_of(self.job.settings),
            **adds_to(self.job, "internal"),
        }
        rows = {"read": self.rows.read, "written": self.rows.written, "skipped": dict(self.rows.skipped)}
        return {"accounting": rows, "edition": "internal", "private": private}


def origin(job: Job) -> str:
    """Where the word vectors come from, in words."""
    how = job.settings.vectors
    if job.added is not None:
        return job.added.base.origin
    if job.imported is not None:
        return GIVEN
    more = " and more text" if how.more_text else ""
    return f"trained on these notes{more}" + (", from vectors given" if how.start_vectors else "")


def _passes(made: Obfuscation) -> int | None:
    """Passes of the training; None of vectors that were given."""
    return made.vectors.meta.get("epochs") if made.job.imported is None else None


def _part(made: Obfuscation) -> dict[str, Any]:
    """The share of the patients whose notes the vectors were trained on, where it was not all."""
    share = made.vectors.meta.get("patients_share") if made.job.imported is None else None
    return {} if share is None else {"patients_share": share}


def public_settings(settings: ReleaseSettings) -> dict[str, Any]:
    """The settings that a reader of the release may see."""
    record = settings.flat()
    shown = {k: v for k, v in record.items() if k not in _CALL and k not in _PLACES and k not in _idle(settings)}
    if "n" in shown:
        shown["n"] = str(settings.channel.n)
    return shown | {f"{k}_given": record.get(k) is not None for k in _PLACES if k in record}


def _idle(settings: ReleaseSettings) -> set[str]:
    """Settings of mechanisms that were not used, and of nothing else."""
    used = {*mechanism_of(settings.channel).flags(), *Policy.__dataclass_fields__}
    return {name for _, kind in mechanisms for name in kind.model_fields} - used


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
            doubled=tally.doubled,
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


def record_of(
    made: Obfuscation, account: Account, not_tried: tuple[str, ...], notes: Sequence[AlignedNote]
) -> ReleaseRecord:
    """The internal edition: what a report of this run shows."""
    job, counts, rows = made.job, made.counts, made.rows
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
            Fact("different words that may come out", int(made.channel.written.sum())),
            Fact("words seen in too few patients to come out", int((~made.channel.eligible).sum())),
            Fact("words without a vector", without_vector(made.vectors, made.counts)[0]),
            Fact("word vectors", origin(made.job)),
            *_measured_on(account.findings),
            *_kept(made),
            *(added_facts(job.added, made.tally, made.on_both) if job.added else ()),
        ),
    )
    return ReleaseRecord(
        title=TITLE,
        edition="internal",
        run=account.run,
        created=account.created,
        version=version("clinveil"),
        corpus=facts,
        accounting=token_rows(made.tally),
        gates=tuple(account.gates),
        findings=tuple(account.findings),
        phi=_phi(made),
        notes=tuple(notes),
        stages=tuple(made.stages),
        settings=tuple(Fact(k.replace("_", " "), _shown(v)) for k, v in public_settings(job.settings).items()),
        provenance=_provenance(made),
        warnings=_warnings(made, account.findings),
        not_tried=not_tried,
        test_seed=job.key.test_seed is not None,
        risk_threshold=job.settings.risk_threshold,
    )


def _measured_on(findings: Sequence[Finding]) -> list[Fact]:
    """Of a release that is too large to be measured whole, how much of it was."""
    said = sorted({str(f.detail["measured_on"]) for f in findings if "measured_on" in f.detail})
    return [Fact("attacks and utility were measured on", "; ".join(said))] if said else []


def _kept(made: Obfuscation) -> list[Fact]:
    """The words left as they are on request: their number for everybody, the words for the vault."""
    kept = sorted(made.channel.kept)
    if not made.job.settings.channel.keep_words:
        return []
    return [Fact("words kept as they are", len(kept)), Fact("which words", ", ".join(kept), internal=True)]


def _shown(value: Any) -> Any:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else value


def _phi(made: Obfuscation) -> tuple[PhiCount, ...] | None:
    if made.found is None:
        return None
    policy = made.job.settings.identifiers.policy()
    covered = covered_labels()
    return tuple(
        PhiCount(label, what, made.found[label], policy.means(label) if label in covered else "no detector for it")
        for label, what in LABELS.items()
    )


def _provenance(made: Obfuscation) -> tuple[Fact, ...]:
    facts = [Fact("released notes (SHA-256)", made.notes_sha256)]
    facts += [Fact("key commitment (SHA-256)", made.job.key.commitment)]
    facts += [Fact(f"{name} (SHA-256)", digest) for name, digest in made.digests.items()]
    facts += [Fact(f"{name} seed", seed, internal=name == "training") for name, seed in made.seeds.items()]
    facts += [
        Fact("source notes (SHA-256)", made.source_sha256, internal=True),
        Fact("clinveil", version("clinveil")),
        Fact("Python", platform.python_version()),
        Fact("randomness of the release", "SipHash-2-4 and BLAKE2b, keyed"),
    ]
    return tuple(facts)


def _warnings(made: Obfuscation, findings: Sequence[Finding]) -> tuple[str, ...]:
    job, settings, said = made.job, made.job.settings, []
    if made.job.corpus.columns.patient_id is None:
        said.append("The source names no patients: each note was taken for a patient of its own, so a word that one")
        said[-1] += " person's many notes repeat counts as a word of many, and intervals are too narrow."
    said += _vector_warnings(job)
    said += added_warnings(job.added, made.tally, made.on_both) if job.added else ()
    said += [_again(one, findings) for one in made.earlier]
    said += linkage_warnings(findings, min(settings.max_linkage, LINKAGE_WARNED))
    said += switched_off(settings.max_names, settings.max_linkage)
    said += _feed_warnings(findings, made.counts.n_patients)
    if not settings.phi:
        said.append("PHI replacement was switched off: names entered the vocabulary.")
    said += made.channel.shortfalls
    said += _memo_warnings(made)
    if settings.channel.layout == "keep":
        said.append(_singled_out(findings, "attack.layout_unique", *LAYOUT))
    if job.corpus.columns.keep:
        said.append(_singled_out(findings, "attack.kept_columns_unique", *KEPT))
    if settings.order == "source":
        said.append("Rows stand in the order of the source: somebody who holds that order knows whose note is whose.")
    if job.facts:
        said.append(
            f"The release has {len(job.facts)} parts, as its source: notes that stood in one part there, such as those "
            "of a year or a ward, stand in one part here."
        )
    if settings.channel.keep_words:
        said.append(f"{made.tally.kept_words:,} words were left as they are on request; they are not protected.")
    return tuple(said)


def _vector_warnings(job: Job) -> Iterator[str]:
    if GIVEN in origin(job):
        yield (
            "The word vectors were given: whoever else has their file has them. Figures of attackers without the "
            "vectors say nothing of such people; read those of attackers who have them."
        )
    elif job.settings.vectors.start_vectors:
        yield (
            "The vectors were trained on from given ones: an attacker with that file begins where this release began, "
            "and comes closer to its vectors than those who train their own, whom the figures are of."
        )
    if job.settings.vectors.more_text:
        yield "Vectors were trained on more text than the notes: an attacker who has it can train closer ones."


def _again(one: Earlier, findings: Sequence[Finding]) -> str:
    """What an earlier release of the same notes means for this one."""
    said = f"{one.said} of the notes left before, in release {one.entry.run}, under another key."
    both = next((f for f in findings if f.measure == "attack.two_releases" and f.value is not None), None)
    if both is None:
        return f"{said} Who holds both has two draws of their words: read the figures for several draws."
    told = f"{both.value:.0%} of the words that both know, with the vectors, and {both.detail['alone']:.0%} from this"
    return f"{said} Who holds both reads {told} one."


def _memo_warnings(made: Obfuscation) -> Iterator[str]:
    """What repeats give away; nothing where one draw tells as much as many."""
    memo = made.job.settings.channel.memo
    if memo == "corpus":
        yield "Each word has one replacement in the whole release: a code, that word frequencies help to break."
    elif not made.channel.settled and memo in ("occurrence", "rare"):
        often = f" that occur {made.job.settings.channel.rare_below} times or more" if memo == "rare" else ""
        yield f"Draws of words{often} are fresh for each occurrence: what repeats adds up (figures for several draws)."


def _feed_warnings(findings: Sequence[Finding], patients: int) -> list[str]:
    own = {f.measure.removeprefix("attack.own_"): f for f in findings if f.measure.startswith("attack.own_")}
    if not own:
        return ["No known-patient feed was given: no patient's own identifiers could be looked for in their notes."]
    missing = [name.replace("_", " ") for name, finding in own.items() if finding.value is None]
    said = [f"Not looked for, because the feed holds none that could be: {', '.join(missing)}."] if missing else []
    known = int(own["name"].detail.get("in_release") or 0)
    if 2 * known < patients:
        said.append(f"The feed knows {known / patients:.0%} of the patients: nothing is known of the others.")
    if own["name"].control == 0:
        said.append("No known patient's own full name stands in their source notes: is the feed of these patients?")
    return said


LAYOUT = "Layout was kept:", "are the only ones with theirs"
KEPT = (
    "Kept columns are passed as they are, and nobody looks for identifiers in them:",
    "have values that are one patient's alone",
)


def _singled_out(findings: Sequence[Finding], measure: str, what: str, alone: str) -> str:
    share = next((f.value for f in findings if f.measure == measure and f.value is not None), 0.0)
    some = f"{share:.1%}" if share >= 0.001 or not share else "fewer than 0.1%"
    return f"{what} {some} of the notes {alone}."
