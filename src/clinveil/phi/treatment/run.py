"""`clinveil deidentify`: treat the identifiers of notes, count them, and write the secrets to a
vault.

Part files are treated part by part. Notes, patients and part files get new ids and names, except
with `keep_ids`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinveil.core import (
    KEY,
    FolderKind,
    InputError,
    Key,
    Location,
    Maker,
    Say,
    atomic,
    code_version,
    default_vault,
    fingerprint,
    private_text,
    refuse_places,
    remove,
    run_folder,
    track,
)
from clinveil.corpus import (
    Corpus,
    OpenedCorpus,
    PartedCorpus,
    Patient,
    as_parts,
    facts_of,
    names_of,
    open_corpus,
    output_in,
    read_patients,
    write_corpus,
)
from clinveil.phi.settings import DeidentifySettings
from clinveil.phi.treatment.columns import check_date_columns
from clinveil.phi.treatment.crosswalk import NewIds, part_name
from clinveil.phi.treatment.deidentifier import NoteDeidentifier, TreatedBatch
from clinveil.phi.treatment.part_passes import DeidentifierRecipe, PartTask, detect_parts
from clinveil.phi.treatment.passes import check_known_patients, deidentify_corpus
from clinveil.phi.treatment.policy import Policy, Treatment
from clinveil.phi.treatment.records import NO_PATIENT_LIST, RECORD, Records, RunCounts, records
from clinveil.phi.treatment.surrogates.pools import sizes
from clinveil.phi.validation.corrections import refuse_other_notes
from clinveil.scale import Broken, Map, Store, each, opened_for

MAKER = Maker("deidentify")
# In the vault: stored spans until the run succeeds; text, removed after each run.
TASKS = "tasks"
SCRATCH = "work"
# Osborne 2025, doi 10.3390/electronics14193945: share of documents with replaced names in which a
# name is leaked.
_SURROGATE_RISK = (
    "surrogates: a patient's names agree across notes, so a missed name is conspicuous"
    " (Osborne 2025: 27.1 % of documents leak if .1 % of names are missed, 94.2 % at 5 %)"
)
ANY_LANGUAGE = (
    "language=any: notes are not checked for English; identifiers in other languages remain"
)
README = """Key and findings of a run of `clinveil deidentify`.
SECRET: do not share any file of this folder.

key.bin             source of all surrogates and date offsets; keep it to treat later notes of the
                    same patients alike
deidentify.json     settings, input and counts of the run; no note text
audit-0001.jsonl    per run, the treatment of every span, chained and sealed (clinveil verify); no
                    note text
crosswalk-*.bin     the original identifiers, encrypted with key.bin, for clinveil reidentify.
                    Store key.bin elsewhere: with both files, anyone can restore the notes
residues.jsonl      unchanged text that looks like an identifier, with its context (clinveil review)
spans.jsonl         every detected identifier with its text (without --spans: those of notes with
                    residues)
review/             decisions of each reviewer (clinveil review), for --reviewed of release and
                    deidentify

The treated notes are secret too: they still contain the identifiers that the detectors missed.
"""


def deidentify_notes(
    notes: Location, out: Path, settings: DeidentifySettings, *, say: Say, vault: Path | None = None
) -> RunCounts:
    """Remove, replace or tag identifiers. Missed identifiers remain, so the written notes are
    secret.

    Args:
        vault: folder of key, record and ground truth; OUT.vault if None. An existing key in it is
            used again.

    Raises:
        UsageError: invalid paths or settings. InputError: invalid notes.
        GateError: the detectors failed on more than 1 % of the notes; nothing is written.
    """
    secrets = vault or default_vault(out)
    patients = settings.identifiers.patients
    refuse_places(out, MAKER, force=settings.force, vault=secrets, read={"NOTES": notes})
    refuse_places(out, MAKER, force=settings.force, read={"--patients": patients})
    keep = settings.identifiers.opened(settings.keep)
    opened = open_corpus(notes, settings.notes, label=settings.label, keep=keep)
    corpus = opened.screened(settings.identifiers.language)
    parted = as_parts(corpus, out)
    policy = settings.identifiers.policy()
    check_date_columns(corpus, policy, settings.identifiers.shift)
    _warn(settings, policy, say)
    if not parted:  # the facts of parts are checked before their notes are treated
        for _ in corpus.batches():
            """Read only to refuse notes before the work."""
        corpus.seen.refuse()
    if patients is None:
        say(NO_PATIENT_LIST)
    if settings.identifiers.reviewed:
        refuse_other_notes(settings.identifiers, corpus, fingerprint(notes))
    # OUT appears last, when the vault is complete and its scratch is removed.
    with (
        atomic(out, force=settings.force, maker=MAKER) as part,
        run_folder(secrets, VAULT) as folder,
    ):
        # An existing key is used again, so that later notes of a patient are treated like the
        # earlier ones.
        key = folder.key() if settings.seed is None else Key.from_seed(settings.seed)
        deidentifier = in_worker(settings, key, read_patients(patients) if patients else None)
        target, suffix = (part, "") if parted else output_in(part, out, corpus.suffix)
        with records(secrets, key, crosswalk=settings.crosswalk) as kept:
            inputs = _inputs(notes, settings, policy)
            kept.audit.begin("deidentify", {**_identity(key, kept.run), **inputs})
            counts = _write(settings, corpus, deidentifier, (target, suffix), kept, say)
            counts.check_failures()
            check_known_patients(deidentifier.patients.keys(), counts.known_found)
            kept.end(key, {**counts.as_dict(), "output_sha256": fingerprint(target)})
        _write_record(secrets, key, notes, settings, counts, kept)
        remove(secrets / TASKS)
    return counts


def _warn(settings: DeidentifySettings, policy: Policy, say: Say) -> None:
    if policy.warning:
        say(policy.warning)
    if Treatment.SURROGATE in policy.treatments.values():
        say(_SURROGATE_RISK)
    if settings.identifiers.language == "any":
        say(ANY_LANGUAGE)


def _inputs(notes: Location, settings: DeidentifySettings, policy: Policy) -> dict[str, Any]:
    """Return what the run depends on, as hashes without paths."""
    patients = settings.identifiers.patients
    return {
        "code_sha256": code_version(),  # includes rules, word lists and models
        "policy": policy.name,
        "policy_sha256": policy.digest,
        "patients_sha256": fingerprint(patients) if patients else None,
        "input_sha256": fingerprint(notes),
        "audit": settings.audit,
    }


def _identity(key: Key, run: str) -> dict[str, Any]:
    identity = {"version": version("clinveil"), "run": run}
    return {**identity, "test_seed": key.test_seed, "key_commitment": key.commitment}


VAULT = FolderKind(
    "vault of clinveil deidentify",
    notes={"README.txt": README},
    known=lambda ours, rest: ours or RECORD in rest or rest <= {KEY},
    scratch=(SCRATCH,),
)


def in_worker(
    settings: DeidentifySettings, key: Key, patients: Mapping[str, Patient] | None
) -> NoteDeidentifier:
    """Return the de-identifier for some settings; workers build it too."""
    phi = settings.identifiers
    deidentifier = NoteDeidentifier.of(phi, key, patients=patients, keep_spans=settings.spans)
    return deidentifier.recording(audit=settings.audit == "full", crosswalk=settings.crosswalk)


def _write(
    settings: DeidentifySettings,
    corpus: OpenedCorpus,
    deidentifier: NoteDeidentifier,
    target: tuple[Path, str],
    kept: Records,
    say: Say,
) -> RunCounts:
    path, suffix = target
    with opened_for(settings.executor, settings.workers) as task_map:
        if isinstance(corpus, PartedCorpus) and not suffix:
            return _write_parts(settings, corpus, deidentifier, path, kept, task_map, say)
        results = deidentify_corpus(corpus, deidentifier, task_map, say=say)
        shown = track(results, "notes", say, size=lambda result: result.batch.num_rows)
        counts = RunCounts(deidentifier.policy, deidentifier.patients.keys())
        output = _Output(path, suffix, _new_ids(settings, deidentifier, corpus))
        try:
            _write_notes(shown, corpus, output, counts, kept.add)
        except InputError:  # for example, no note is left to write
            counts.check_failures()
            raise
    return counts


@dataclass(frozen=True)
class _Output:
    """Where treated notes are written, and their new ids; None if the source's are kept."""

    path: Path
    suffix: str
    new_ids: NewIds | None = field(repr=False)


def _write_notes(
    results: Iterable[TreatedBatch],
    source: OpenedCorpus,
    output: _Output,
    counts: RunCounts,
    add_records: Callable[..., None],
) -> None:
    """Write the treated notes of a file; add their counts, and their records for the vault."""

    def batches() -> Iterator[pa.RecordBatch]:
        for result in results:
            counts.add(result)
            renamed = _renamed(result, output.new_ids)
            add_records(renamed.audit, renamed.crosswalk, renamed.spans, renamed.residues)
            yield renamed.batch

    write_corpus(batches(), output.path, source.columns, output.suffix)
    counts.read += sum(source.skipped.values())
    counts.skipped += source.skipped


def _new_ids(
    settings: DeidentifySettings, deidentifier: NoteDeidentifier, corpus: Corpus
) -> NewIds | None:
    """Return the new ids of the written notes; None if the source's are kept."""
    return (
        None
        if settings.keep_ids
        else NewIds(deidentifier.key, patients=corpus.columns.has_patients)
    )


def _renamed(result: TreatedBatch, new_ids: NewIds | None) -> TreatedBatch:
    """Return a result with new ids in its notes and in the rows of the crosswalk."""
    if new_ids is None:
        return result
    rows = [
        row._replace(
            new_note_id=new_ids.note(row.note_id), new_patient_id=new_ids.patient(row.patient_id)
        )
        for row in result.crosswalk
    ]
    return replace(result, batch=new_ids(result.batch), crosswalk=rows)


def _write_record(
    secrets: Path,
    key: Key,
    notes: Location,
    settings: DeidentifySettings,
    counts: RunCounts,
    kept: Records,
) -> None:
    """Write the record of the run to the vault."""
    phi = settings.identifiers
    record = {
        "secret": True,
        **_identity(key, kept.run),
        "notes": str(notes.absolute()),
        "folder": str(Path.cwd()),
        "settings": settings.model_dump(mode="json"),
        "mode": phi.mode,
        "policy": {
            "name": counts.policy.name,
            "sha256": counts.policy.digest,
            **counts.policy.record(),
        },
        "surrogate_names": (
            sizes() if Treatment.SURROGATE in counts.policy.treatments.values() else None
        ),
        "known_patients": phi.patients is not None,
        **counts.as_dict(),
        "audit_chain": kept.audit.head,
    }
    private_text(secrets / RECORD, json.dumps(record, indent=2) + "\n")


def _write_parts(
    settings: DeidentifySettings,
    corpus: PartedCorpus,
    deidentifier: NoteDeidentifier,
    folder: Path,
    kept: Records,
    task_map: Map,
    say: Say,
) -> RunCounts:
    """Treat every part; add its records to the vault in the order of the parts.

    Args:
        folder: new folder of the treated parts.

    Raises:
        Incomplete: some parts failed; the stored spans of the others are reused by the next run.
        InputError: a note id occurs in two parts.
    """
    scratch = kept.vault / SCRATCH
    broken = Broken()
    corpus, facts = facts_of(corpus, task_map, say, broken)
    deidentifier.key.save(scratch / "key.bin")
    recipe = DeidentifierRecipe.of(
        in_worker, settings, settings.identifiers.policy().files[1:], scratch / "key.bin"
    ).sharing(deidentifier.patients, scratch)
    parts = [
        (part, part_facts.digest) for part, part_facts in zip(corpus.parts, facts, strict=True)
    ]
    store = Store(kept.vault / TASKS)
    tasks = detect_parts(
        parts, recipe, store, scratch, task_map, say, deidentifier.finder.uses_other_notes
    )
    broken.refuse()  # only now, so that the results of the other parts are stored
    folder.mkdir(mode=0o700)
    names = names_of(corpus)
    if not settings.keep_ids:
        names = [part_name(deidentifier.key, name, corpus.suffix) for name in names]
    targets = [
        (task, folder / name, scratch, settings) for task, name in zip(tasks, names, strict=True)
    ]
    counts = RunCounts(deidentifier.policy, deidentifier.patients.keys())
    for of_part, records_of_part in track(
        each(task_map, _write_part, targets), "notes", say, size=lambda of: of[0].written
    ):
        counts.add_counts(of_part)
        with records_of_part.open(encoding="utf-8") as file:
            for line in file:
                kept.add(*json.loads(line))
        records_of_part.unlink()
    return counts


def _write_part(item: tuple[PartTask, Path, Path, DeidentifySettings]) -> tuple[RunCounts, Path]:
    """Write one part; return its counts and the file with its records for the vault."""
    task, path, scratch, settings = item
    part = task.part
    deidentifier = task.recipe()
    counts = RunCounts(deidentifier.policy, deidentifier.patients.keys())
    records = scratch / f"{path.name}.records"
    with records.open("w", encoding="utf-8") as file:

        def add_records(*fields: Sequence[Any]) -> None:
            file.write(json.dumps(fields) + "\n")

        output = _Output(path, part.suffix, _new_ids(settings, deidentifier, part))
        _write_notes(task.treated(), part, output, counts, add_records)
    return replace(counts, known=frozenset()), records
