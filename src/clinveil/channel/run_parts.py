"""Part files obfuscated, as one run: the channel is learnt from all, then each part is a task of its own.

Every draw is a keyed function of note and position, so neither the parts nor who does the work change a byte. The vault
is a run folder: key, vectors and channel, and the parts that are done, are taken up by the same command after a kill.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from shutil import copyfile
from typing import Any

from clinveil.channel.apply import Obfuscator, obfuscate_batches
from clinveil.channel.files import channel_digest, load_channel
from clinveil.channel.policy import Policy
from clinveil.channel.settings import ObfuscateSettings
from clinveil.channel.tally import Tally, tally_from
from clinveil.channel.vault import MANIFEST, Run, keep, learn, refuse_failures
from clinveil.core.files import Maker, private_text, read_json, remove, whole
from clinveil.core.keys import TEST_SEED, Key
from clinveil.core.progress import track
from clinveil.core.runfolder import KEY, Kind, run_folder, run_hash
from clinveil.core.types import Say
from clinveil.corpus.corpus import NO_PATIENTS
from clinveil.corpus.open import NotesCorpus
from clinveil.corpus.part_facts import PartFacts, names_of, part_facts, refuse_repeats_over
from clinveil.corpus.parts import PartedCorpus
from clinveil.corpus.write import write_corpus
from clinveil.scale import Map
from clinveil.scale.executor import opened_for
from clinveil.scale.pieces import each
from clinveil.scale.tasks import Store, name_of, perform

LEARNT, TASKS = "learnt.json", "tasks"
LEARNS = ("vectors", "neighbours", "channel")
KIND = Kind(
    "vault of clinveil obfuscate for part files",
    own=frozenset({*LEARNS, LEARNT, TASKS, MANIFEST, "README.txt"}),
    scratch=("scratch",),
)


@dataclass(frozen=True)
class Draw:
    """One part through the channel.

    Attributes:
        digest: of the part. vault: where a worker finds key and channel. channel: its digest. commitment: of the key.
    """

    part: NotesCorpus = field(repr=False)
    digest: str
    vault: Path
    channel: str
    policy: Policy
    commitment: str
    test: bool

    @property
    def title(self) -> str:
        """What it does, for people."""
        return f"{self.part.name} obfuscated"

    @property
    def file(self) -> str:
        """The name of what it writes."""
        return f"notes{self.part.suffix}"

    def identity(self) -> Mapping[str, Any]:
        """The part, the channel, and the key."""
        told = {"part": self.digest, "columns": asdict(self.part.columns), "channel": self.channel}
        return told | {"policy": asdict(self.policy), "key": self.commitment}

    def __call__(self, folder: Path, store: Store) -> dict[str, Any]:
        """Write the part; returns its tally, and how many rows its source leaves out."""
        tally, obfuscator = Tally(), _obfuscator(self.vault, self.policy, self.channel, self.commitment)

        def batches() -> Any:
            nonlocal tally
            for result in obfuscate_batches(self.part.batches(), obfuscator):
                tally += result.tally
                yield result.batch

        metadata = {"clinveil": TEST_SEED} if self.test else None
        write_corpus(batches(), folder / self.file, self.part.columns, self.part.suffix, metadata=metadata)
        return {"tally": tally.as_dict(), "skipped": dict(self.part.skipped)}


@lru_cache(maxsize=1)
def _obfuscator(vault: Path, policy: Policy, channel: str, commitment: str) -> Obfuscator:
    """Made once a process; the digests tell whether it is still the one of these places."""
    return Obfuscator(load_channel(vault / "channel", policy), Key.load(vault / KEY))


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
    """Obfuscate every part into a file of the folder OUT; tells what became of all notes.

    Raises:
        UsageError: places that do not fit. Incomplete: some parts are broken. InputError: an id stands in two parts.
        GateError: more than 1 % of the notes cannot be written; nothing is.
    """
    if corpus.columns.patient_id is None:
        say(NO_PATIENTS)
    asked = run_hash(settings, "\n".join(part.name for part in corpus.parts), vectors)
    with run_folder(vault, KIND, asked, force=settings.force, made=out) as folder:
        with whole(out, force=settings.force, maker=maker) as place, opened_for(settings) as over:
            facts = _read(corpus, over, say)
            run = Run(settings, corpus, folder.key(settings.seed), folder.vault, vectors, say)
            channel = _learn(run, facts)
            works = [
                Draw(part, one.digest, run.vault, channel, settings.channel.policy, run.key.commitment, _test(run.key))
                for part, one in zip(corpus.parts, facts, strict=True)
            ]
            tally = _draw(run, works, over)
            refuse_failures(tally)
            place.mkdir(mode=0o700)
            for work, name in zip(works, names_of(corpus), strict=True):
                link(_store(run).folder(work) / work.file, place / name)
            keep(run, tally)
        remove(_store(run).root)
        folder.finish()
    return tally


def _test(key: Key) -> bool:
    return key.test_seed is not None


def _read(corpus: PartedCorpus, over: Map, say: Say) -> list[PartFacts]:
    """Every part read to its end. Raises Incomplete for broken ones, InputError for an id in two."""
    facts = list(track(each(over, part_facts, corpus.parts), "notes read", say, size=lambda one: one.rows))
    refuse_repeats_over(corpus, facts)
    return facts


def _learn(run: Run, facts: Sequence[PartFacts]) -> str:
    """Learn the channel, or take that of an earlier run over the same parts; its digest."""
    of = hashlib.sha256("".join(one.digest for one in facts).encode()).hexdigest()
    said = read_json(run.vault / LEARNT)
    if isinstance(said, dict) and said.get("of") == of:
        run.notes |= said["notes"]
        return str(said["notes"]["channel_sha256"])
    for name in (*LEARNS, LEARNT):
        remove(run.vault / name)
    digest = channel_digest(learn(run))
    private_text(run.vault / LEARNT, json.dumps({"of": of, "notes": run.notes}))
    return digest


def _store(run: Run) -> Store:
    return Store(run.vault / TASKS)


def _draw(run: Run, works: Sequence[Draw], over: Map) -> Tally:
    store, tally = _store(run), Tally()
    run.corpus.skipped.clear()  # of the pass that learnt the channel
    by_name = {name_of(work): work for work in works}

    def results() -> Any:
        for name in each(over, partial(perform, store), works):
            yield store.result(by_name[name])

    for result in track(results(), "notes", run.say, size=lambda one: one["tally"]["notes"]):
        tally += tally_from(result["tally"])
        run.corpus.skipped.update(result["skipped"])
    return tally


def link(source: Path, target: Path) -> None:
    """A file under a second name, or copied where the disk has no such names."""
    try:
        os.link(source, target)
    except OSError:
        copyfile(source, target)
