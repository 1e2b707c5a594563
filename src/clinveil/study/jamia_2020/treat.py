"""Vectors of the original with their neighbours, and the notes under each setting of the grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT
from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.jamia_2020.prepare import COLUMNS, NOTES, Prepare

if TYPE_CHECKING:
    import pyarrow as pa

    from clinveil.channel.channel import Channel, Memo
    from clinveil.corpus.corpus import Corpus
    from clinveil.vectors.table import Neighbours, Vectors

VECTORS, TABLE, REACH, FLOOR = "vectors", "neighbours", 14, 5
# An invented note: Table 1 shows it under every setting. It holds no real person.
EXAMPLE = (
    "Mrs. Eleanor Whitfield is a 67 year old woman with diabetes and hypertension who was seen in clinic by "
    "Dr. Marcus Feld for chest pain and shortness of breath. Physical exam was normal. Start aspirin, follow up in "
    "two weeks."
)


@dataclass(frozen=True)
class Training:
    """How word vectors are trained (paper A: 100 dimensions, window 5, 5 negative samples)."""

    algorithm: str
    dim: int
    window: int
    negative: int
    epochs: int


@dataclass(frozen=True)
class Setting:
    """One treatment of the notes.

    Attributes:
        kind: original, phi-remove, phi-replace, neighbours, product, laplace or gaussian.
        n: of neighbours. algorithm: whose vectors; "" where none are used. share: of unchanged tokens, for noise.
    """

    kind: str
    n: str = ""
    algorithm: str = ""
    share: float = 0.0

    @property
    def label(self) -> str:
        """For tables."""
        names = {"original": "original", "phi-remove": "PHI removed", "phi-replace": "PHI replaced"}
        names["product"] = "our defaults (N 3-14, floor 5, memo patient)"
        if self.kind in names:
            return names[self.kind]
        if self.kind == "neighbours":
            return f"N = {self.n}, {self.algorithm}"
        return f"{self.kind}, {self.share:.0%} of tokens stay"


@dataclass(frozen=True)
class Neighbourhood:
    """Train vectors on the original notes and find the neighbours of every word."""

    prepare: Prepare
    training: Training
    seed: int

    @property
    def title(self) -> str:
        """What it does."""
        return f"{self.training.algorithm} vectors of the original, and neighbours"

    def identity(self) -> dict[str, Any]:
        """Notes and training."""
        return {"prepare": name_of(self.prepare), **asdict(self.training), "seed": self.seed, "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write vectors and table."""
        from clinveil.core.files import remove
        from clinveil.corpus.open import open_corpus
        from clinveil.vectors.files import save_vectors
        from clinveil.vectors.floor import output_floor
        from clinveil.vectors.neighbours import neighbours, save_neighbours
        from clinveil.vectors.settings import VectorSettings
        from clinveil.vectors.train import train

        corpus = open_corpus(store.folder(self.prepare) / NOTES)
        settings = VectorSettings(**asdict(self.training))
        vectors = train(corpus, settings, seed=self.seed, workers=1, scratch=folder / "scratch")
        remove(folder / "scratch")
        eligible = output_floor(vectors, 1, need=REACH + 1, allow_small=True)
        table = neighbours(vectors, REACH, eligible=eligible, threads=1, seed=self.seed)
        save_vectors(vectors, folder / VECTORS)
        save_neighbours(table, folder / TABLE)
        return {"words": len(vectors)}

    def load(self, store: Store) -> tuple[Vectors, Neighbours]:
        """What a finished task wrote."""
        from clinveil.vectors.files import load_vectors
        from clinveil.vectors.neighbours import load_neighbours

        folder = store.folder(self)
        return load_vectors(folder / VECTORS), load_neighbours(folder / TABLE)


@dataclass(frozen=True)
class Treat:
    """The notes under one setting; each repetition draws afresh."""

    prepare: Prepare
    setting: Setting
    near: Neighbourhood | None
    repetition: int
    seed: int

    @property
    def title(self) -> str:
        """What it does."""
        return f"{self.setting.label}, repetition {self.repetition}"

    def identity(self) -> dict[str, Any]:
        """Notes, setting, vectors and repetition."""
        near = name_of(self.near) if self.near else None
        said = {"setting": asdict(self.setting), "repetition": self.repetition, "seed": self.seed}
        return {"prepare": name_of(self.prepare), "near": near, **said, "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes; return the example note and, of channels, what an attacker who has them gets."""
        from clinveil.corpus.corpus import memory_corpus
        from clinveil.corpus.open import open_corpus
        from clinveil.corpus.write import write_corpus

        corpus = open_corpus(store.folder(self.prepare) / NOTES)
        channel, said = self._channel(store)
        write_corpus(self._treated(corpus, channel), folder / NOTES, COLUMNS, ".parquet")
        example = memory_corpus([("example", "example", EXAMPLE)])
        shown = [text for batch in self._treated(example, channel) for text in batch[TEXT].to_pylist()]
        return {"example": shown[0] if shown else "", **said}

    def _channel(self, store: Store) -> tuple[Channel | None, dict[str, Any]]:
        if self.near is None:
            return None, {}
        from clinveil.channel.mechanism import Material, common_pool
        from clinveil.study.jamia_2020.mechanism import mechanism_for, table_for

        vectors, table = self.near.load(store)
        assert vectors.counts is not None
        table = table_for(self.setting, vectors, table)
        mechanism = mechanism_for(self.setting, vectors, table, self.seed)
        pool = common_pool(vectors.counts, table.eligible)
        channel = mechanism.compile(Material(vectors, table.eligible, pool, table, seed=self.seed, draws=100))
        if self.repetition:
            return channel, {}
        from clinveil.study.jamia_2020.tokens_of import token_findings

        return channel, {"findings": [f.as_dict() for f in token_findings(channel, vectors, table)]}

    def _treated(self, corpus: Corpus, channel: Channel | None) -> Iterator[pa.RecordBatch]:
        from clinveil.core.keys import Key

        key = Key.from_seed(1_000_003 * self.seed + self.repetition)
        if channel is not None:
            from clinveil.channel.apply import Obfuscator

            memo: Memo = "patient" if self.setting.kind == "product" else "occurrence"
            obfuscator = Obfuscator(channel.under(memo=memo), key)
            return (_bare(obfuscator(batch).batch) for batch in corpus.batches())
        if self.setting.kind == "original":
            return (_bare(batch) for batch in corpus.batches())
        from clinveil.phi.deidentifier import Deidentifier

        mode = self.setting.kind.removeprefix("phi-")
        deidentifier = Deidentifier(key, mode=mode)  # type: ignore[arg-type]
        return (_bare(deidentifier(batch).batch) for batch in corpus.batches())


def _bare(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [batch.column(name).cast(pa.string()) for name in (NOTE_ID, PATIENT_ID, TEXT)]
    return pa.record_batch(columns, names=[NOTE_ID, PATIENT_ID, TEXT])


def texts_of_treat(treat: Treat, store: Store, note_ids: list[str]) -> list[str]:
    """The treated texts in the order of some notes; a note that the remover could not write is empty."""
    import pyarrow.parquet as pq

    table = pq.read_table(store.folder(treat) / NOTES)
    texts = dict(zip(table[NOTE_ID].to_pylist(), table[TEXT].to_pylist(), strict=True))
    return [texts.get(note) or "" for note in note_ids]


def seeds(seed: int, n: int) -> list[int]:
    """Independent seeds of runs."""
    return [int(x) for x in np.random.SeedSequence([seed, 9]).generate_state(n)]
