"""Notes freed of identifiers, as one run: what was found is counted, and its secrets go to a vault."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import Maker, default_vault, private_text, refuse_places, remove
from clinveil.core.keys import Key
from clinveil.core.progress import track
from clinveil.core.runfolder import KEY, LOCK, Kind, code_version, fingerprint, run_folder
from clinveil.core.types import Say
from clinveil.corpus.open import OpenedCorpus, PartedCorpus, open_corpus
from clinveil.corpus.part_facts import as_parts
from clinveil.corpus.people import write_patients
from clinveil.corpus.write import place_in, write_corpus
from clinveil.phi.counts import Counts
from clinveil.phi.decisions import Decisions
from clinveil.phi.deidentifier import Deidentified, Deidentifier
from clinveil.phi.partial_removal import EmulatedRemover
from clinveil.phi.passes import check_known_patients, deidentify_corpus
from clinveil.phi.policy import Treatment
from clinveil.phi.records import Records, left, records
from clinveil.phi.remover import deidentifier_of, remover_of
from clinveil.phi.run_parts import SCRATCH, TASKS, holds_tasks, write_parts
from clinveil.phi.settings import DeidentifySettings, PhiSettings
from clinveil.phi.surrogates.pools import sizes
from clinveil.scale.executor import opened_for

MAKER = Maker("deidentify")
RECORD = "deidentify.json"
README = """The key, and what was found, of a run of `clinveil deidentify`. SECRET: none of this may leave.

key.bin          all surrogates and date offsets come from it; keep it to treat later notes of the same patients alike
deidentify.json  what was run on which notes, and counts; no note text
audit-0001.jsonl  of each run, what was done to which place, chained and sealed; no note text (clinveil verify)
crosswalk-*.bin  with --crosswalk: what stood in each place, encrypted with key.bin (clinveil reidentify): keep key.bin
                 somewhere else, or whoever takes this folder has both
spans.jsonl      with --spans: every identifier that was found, with its text
review/          of clinveil review: what each reviewer decided; for clinveil deidentify --decisions
missed.parquet   with --miss-rate: the patients whose names were left in place, the truth of the attacks
surrogates.parquet  with --miss-rate and --mode replace: the others under their surrogate names

The notes that were written are secret too: what the detectors miss still stands in them.
"""


def warnings(how: PhiSettings) -> Iterator[str]:
    """What whoever runs this policy must know, for people."""
    policy = how.policy()
    if policy.warning:
        yield policy.warning
    if Treatment.SURROGATE in policy.treatments.values():
        yield f"surrogates {how.surrogates}: {_TRADE[how.surrogates]}"


# Osborne 2025, doi 10.3390/electronics14193945: documents with a leak among those whose names were replaced.
_TRADE = {
    "consistent": "names agree over a patient's notes, so a missed one stands out (Osborne 2025: at .1 % missed 27.1 %"
    " of documents leak, .1 % under a Markov replacement; at 5 % missed 94.2 and 57.7 %)",
    "random": "a missed name hides among others, and nobody can be followed from one mention to the next",
    "markov": "names change now and then: a missed one hides better than among names that agree (Osborne 2025: at .1 %"
    " missed .1 % of documents leak, 27.1 % under a consistent replacement; at 5 % missed 57.7 and 94.2 %), and people"
    " are harder to follow",
}


def deidentify_notes(
    notes: Path, out: Path, settings: DeidentifySettings, *, say: Say, vault: Path | None = None
) -> Counts:
    """Remove, replace or tag the identifiers of notes; what is missed stays, so the notes that are written are secret.

    Args:
        vault: the folder of key, record and truth; OUT.vault if None. Its key is used again if it has one.

    Raises:
        UsageError: places or settings that do not fit. InputError: notes that do not fit.
        GateError: the detectors failed on more than 1 % of the notes; nothing is written.
    """
    secrets, patients = vault or default_vault(out), settings.identifiers.patients
    refuse_places(out, MAKER, force=settings.force, vault=secrets, read={"NOTES": notes})
    refuse_places(out, MAKER, force=settings.force, read={"--patients": patients})
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    parted = as_parts(corpus, out)
    for line in warnings(settings.identifiers):
        say(line)
    decisions = _decisions(settings, corpus)
    with run_folder(secrets, VAULT) as folder, atomic(out, force=settings.force, maker=MAKER) as part:
        # The vault's own key where it has one, so that later notes of a patient are treated as the earlier ones.
        key = folder.key() if settings.seed is None else Key.from_seed(settings.seed)
        remover = remover_of(settings, key, decisions)
        place, suffix = (part, "") if parted else place_in(part, out, corpus.suffix)
        with records(secrets, key, crosswalk=settings.crosswalk, spans=settings.spans) as kept:
            kept.audit.begin("deidentify", _told(notes, settings, key, kept.run))
            counts = _write(settings, corpus, remover, (place, suffix), kept, say)
            counts.check_failures()
            if isinstance(remover, Deidentifier):
                check_known_patients(remover.patients.keys(), counts.met)
            kept.end(key, {**counts.as_dict(), "output_sha256": fingerprint(place)})
        _keep(secrets, key, notes, settings, counts, kept)
        _keep_truth(secrets, remover, say)
        remove(secrets / TASKS)
    return counts


def _told(notes: Path, settings: DeidentifySettings, key: Key, run: str) -> dict[str, Any]:
    """What a run was told, for the audit log: hashes and no place of this machine."""
    how = settings.identifiers
    return {
        "run": run,
        "version": version("clinveil"),
        "code_sha256": code_version(),  # of our rules, word lists and models too
        "policy": how.policy().name,
        "policy_sha256": how.policy().digest,
        "surrogates": how.surrogates,
        "key_commitment": key.commitment,
        "test_seed": key.test_seed,
        "miss_rate": settings.miss_rate,
        "patients_sha256": fingerprint(how.patients) if how.patients else None,
        "input_sha256": fingerprint(notes),
        "audit": settings.audit,
    }


def _ours(vault: Path) -> bool:
    """Whether a folder is a vault of this command: a README.txt of somebody's own may lie in it."""
    names = {item.name for item in vault.iterdir()} if vault.is_dir() else {vault.name}
    of_killed = {LOCK, SCRATCH, *filter(left, names), *({TASKS} if holds_tasks(vault) else ())}
    return RECORD in names or not names - {KEY, *(of_killed if {KEY, TASKS} & names else {LOCK})}


VAULT = Kind("vault of clinveil deidentify", known=_ours, scratch=(SCRATCH,))


def _decisions(settings: DeidentifySettings, corpus: OpenedCorpus) -> Decisions | None:
    """What reviewers decided, if it is about these notes. Raises InputError if it is not."""
    if not settings.decisions:
        return None
    if settings.miss_rate is not None:
        raise UsageError("--decisions has no say in what --miss-rate emulates", hint="give one of the two")
    decisions = Decisions.read(*settings.decisions)
    decisions.check_corpus(corpus)
    return decisions


def _write(
    settings: DeidentifySettings,
    corpus: OpenedCorpus,
    remover: Deidentifier | EmulatedRemover,
    place: tuple[Path, str],
    kept: Records,
    say: Say,
) -> Counts:
    deidentifier = deidentifier_of(settings, remover)
    path, suffix = place
    if isinstance(corpus, PartedCorpus) and not suffix:
        with opened_for(settings) as over:
            return write_parts(settings, corpus, deidentifier, path, kept, over, say)
    counts = Counts(deidentifier.policy, deidentifier.patients.keys())
    try:
        with opened_for(settings) as over:
            done = deidentify_corpus(corpus, deidentifier, over, say=say, whole=False)
            shown = track(done, "notes", say, size=lambda each: each.batch.num_rows)
            write_corpus(_counted(shown, counts, kept), path, corpus.columns, suffix)
    except InputError:  # such as that nothing is left to write
        counts.check_failures()
        raise
    counts.read += sum(corpus.skipped.values())
    counts.skipped += corpus.skipped
    return counts


def _counted(done: Iterable[Deidentified], counts: Counts, kept: Records) -> Iterator[pa.RecordBatch]:
    for each in done:
        counts.add(each)
        kept.add(each)
        yield each.batch


def _keep(secrets: Path, key: Key, notes: Path, settings: DeidentifySettings, counts: Counts, kept: Records) -> None:
    """The record of the run, in the vault."""
    how = settings.identifiers
    record = {
        "secret": True,
        "version": version("clinveil"),
        "run": kept.run,
        "test_seed": key.test_seed,
        "key_commitment": key.commitment,
        "notes": str(notes.absolute()),
        "folder": str(Path.cwd()),
        "settings": settings.flat(),
        "mode": how.mode,
        "policy": {"name": counts.policy.name, "sha256": counts.policy.digest, **counts.policy.record()},
        "surrogates": how.surrogates if how.surrogates != "markov" else f"markov {how.markov:g}",
        "surrogate_names": sizes() if Treatment.SURROGATE in counts.policy.treatments.values() else None,
        "known_patients": how.patients is not None,
        "miss_rate": settings.miss_rate,
        **counts.as_dict(),
        "audit_chain": kept.audit.head,
    }
    private_text(secrets / RECORD, json.dumps(record, indent=2) + "\n")
    private_text(secrets / "README.txt", README)


def _keep_truth(secrets: Path, remover: Deidentifier | EmulatedRemover, say: Say) -> None:
    """Whose names an emulated remover left, and the surrogates of the others: what the attacks are scored against."""
    if not isinstance(remover, EmulatedRemover):
        return
    truth = {"missed": remover.missed, "surrogates": remover.surrogate_patients()}
    say(f"emulated remover: the names of {len(remover.missed)} patients were left in place")
    say("nothing but the known patients' own names was treated: these notes are for attacks and studies only")
    for name, patients in truth.items():
        remove(secrets / f"{name}.parquet")  # an earlier run's truth would be a wrong one
        if patients:
            with atomic(secrets / f"{name}.parquet") as part:
                write_patients(patients, part)
