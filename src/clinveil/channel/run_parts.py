"""The run of `clinveil obfuscate` on part files: learn one channel from all parts, then write each part as a task.

Every draw is a keyed function of note and position, so partitioning and executor do not change the output. The vault is
a run folder: the same command resumes an interrupted run with its key, vectors, channel and finished parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinveil.channel.apply import obfuscate_batches
from clinveil.channel.files import channel_digest
from clinveil.channel.part_draw import PartDraw, link
from clinveil.channel.settings import ObfuscateSettings
from clinveil.channel.tally import Tally, tally_from
from clinveil.channel.vault import MANIFEST, Run, keep, learn, refuse_failures
from clinveil.core.atomic import atomic
from clinveil.core.files import Maker, private_text, read_json, remove
from clinveil.core.keys import TEST_SEED
from clinveil.core.progress import track
from clinveil.core.runfolder import Kind, run_folder, run_hash
from clinveil.core.types import Say
from clinveil.corpus.corpus import NO_PATIENTS
from clinveil.corpus.open import PartedCorpus
from clinveil.corpus.part_facts import PartFacts, digest_of, facts_of, names_of
from clinveil.corpus.write import write_corpus
from clinveil.scale import Map
from clinveil.scale.executor import opened_for
from clinveil.scale.pieces import each
from clinveil.scale.tasks import Store, performed

LEARNT, TASKS = "learnt.json", "tasks"
LEARNS = ("vectors", "neighbours", "channel")
KIND = Kind(
    "vault of clinveil obfuscate for part files",
    own=frozenset({*LEARNS, LEARNT, TASKS, MANIFEST, "README.txt"}),
    scratch=("scratch",),
)


@dataclass(frozen=True)
class Draw(PartDraw):
    """Obfuscation of one part, written in the columns of its source; `test`: under a test seed."""

    test: bool

    @property
    def file(self) -> str:
        """Name of the output file."""
        return f"notes{self.part.suffix}"

    def __call__(self, folder: Path, store: Store) -> dict[str, Any]:
        """Write the part; return its token counts and the skipped rows by reason."""
        tally, (obfuscator, _) = Tally(), self.at_hand()

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal tally
            for result in obfuscate_batches(self.part.batches(), obfuscator):
                tally += result.tally
                yield result.batch

        metadata = {"clinveil": TEST_SEED} if self.test else None
        write_corpus(batches(), folder / self.file, self.part.columns, self.part.suffix, metadata=metadata)
        return {"tally": tally.as_dict(), "skipped": dict(self.part.skipped)}


def obfuscate_parts(
    corpus: PartedCorpus,
    out: Path,
    settings: ObfuscateSettings,
    maker: Maker,
    *,
    say: Say,
    vectors: Path | None,
    vault: Path,
) -> Tally:
    """Obfuscate every part into a file of the folder OUT; return the token counts.

    Raises:
        UsageError: invalid locations. Incomplete: some parts are unreadable. InputError: an id occurs in two parts.
        GateError: more than 1 % of the notes cannot be written; then nothing is written.
    """
    if corpus.columns.patient_id is None:
        say(NO_PATIENTS)
    asked = run_hash(settings, "\n".join(part.name for part in corpus.parts), vectors)
    with run_folder(vault, KIND, asked, force=settings.force, made=out) as folder:
        with atomic(out, force=settings.force, maker=maker) as place, opened_for(settings) as over:
            _, facts = facts_of(corpus, over, say)
            run = Run(settings, corpus, folder.key(settings.seed), folder.vault, vectors, say, over)
            shared = run.vault, _learn(run, facts), settings.channel.policy, run.key.commitment
            test = run.key.test_seed is not None
            works = [Draw(part, one.digest, *shared, test) for part, one in zip(corpus.parts, facts, strict=True)]
            tally = _draw(run, works, over)
            refuse_failures(tally)
            place.mkdir(mode=0o700)
            for work, name in zip(works, names_of(corpus), strict=True):
                link(_store(run).folder(work) / work.file, place / name)
            keep(run, tally)
        remove(_store(run).root)
        folder.finish()
    return tally


def _learn(run: Run, facts: Sequence[PartFacts]) -> str:
    """Learn the channel, or reuse that of an earlier run over the same parts; return its digest."""
    of = digest_of(facts)
    stored = read_json(run.vault / LEARNT)
    if isinstance(stored, dict) and stored.get("of") == of:
        run.notes |= stored["notes"]
        return str(stored["notes"]["channel_sha256"])
    for name in (*LEARNS, LEARNT):
        remove(run.vault / name)
    digest = channel_digest(learn(run))
    private_text(run.vault / LEARNT, json.dumps({"of": of, "notes": run.notes}))
    return digest


def _store(run: Run) -> Store:
    return Store(run.vault / TASKS)


def _draw(run: Run, works: Sequence[Draw], over: Map) -> Tally:
    tally = Tally()
    run.corpus.skipped.clear()  # counted while learning the channel
    results = each(over, partial(performed, _store(run)), works)
    for result in track(results, "notes", run.say, size=lambda one: one["tally"]["notes"]):
        tally += tally_from(result["tally"])
        run.corpus.skipped.update(result["skipped"])
    return tally
