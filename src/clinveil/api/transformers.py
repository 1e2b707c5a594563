"""Notes in, protected notes of the same kind out: two transformers with scikit-learn's verbs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from warnings import warn

from sklearn.base import BaseEstimator, TransformerMixin

from clinveil.api.frames import Notes, arrow, given, in_python, known_patients, scratch
from clinveil.channel.policy import Memo
from clinveil.channel.settings import ChannelSettings
from clinveil.core.errors import InputWarning, UsageError
from clinveil.core.keys import Key
from clinveil.core.settings import load_settings
from clinveil.scale import serial
from clinveil.vectors.settings import VectorSettings

if TYPE_CHECKING:
    import pyarrow as pa

    from clinveil.channel.channel import Channel
    from clinveil.core.spans import Span
    from clinveil.corpus.corpus import Corpus
    from clinveil.corpus.people import Patient
    from clinveil.vectors.table import Neighbours, Vectors


class Deidentifier(TransformerMixin, BaseEstimator):
    """Finds identifiers in notes and removes, replaces or tags them; it has nothing to learn.

    Args:
        mode: `replace` (surrogates), `remove` or `tag` (`[NAME]`).
        patients: a patients file, a frame like it, or id -> `Patient`: the surest way to find their names.
        key: what surrogates come from; a new one is drawn without it. It is a secret.
        columns: `text`, `id`, `patient`, `keep`, …: which columns of a frame are what.

    >>> import clinveil
    >>> clinveil.Deidentifier(mode="tag").transform(["Seen by Dr. Sarah Miller on 03/14/2021."])
    ['Seen by Dr. [NAME] on [DATE].']
    """

    def __init__(
        self,
        mode: Literal["replace", "remove", "tag"] = "replace",
        *,
        patients: Mapping[str, Patient] | str | Path | None = None,
        key: Key | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        self.mode, self.patients, self.key, self.columns = mode, patients, key, columns

    @in_python
    def fit(self, notes: Notes = None, y: Any = None) -> Self:
        """Draw the key, and read the patients. Raises as `read_patients` does."""
        from clinveil.phi.deidentifier import Deidentifier as Engine

        known, self.key_ = known_patients(self.patients), _key(self.key)
        self._engine = Engine(self.key_, mode=self.mode, patients=known)
        return self

    @in_python
    def transform(self, notes: Notes) -> Any:
        """The notes without the identifiers that were found, of the kind that came in (a path gives an Arrow table).

        Raises InputError for notes that do not fit. Notes that cannot be treated do not come out (`InputWarning`).
        """
        from clinveil.phi.passes import deidentify_corpus

        corpus, back = _opened(notes, self.columns)
        engine = self._fitted()._engine
        done = list(deidentify_corpus(corpus, engine, serial))
        _say_skipped(one.skipped for one in done)
        return back([one.batch for one in done])

    @in_python
    def find(self, text: str) -> list[Span]:
        """The identifiers of one text: sorted spans in code points."""
        found: list[Span] = self._fitted()._engine.find(text)
        return found

    def _fitted(self) -> Self:
        return self if hasattr(self, "_engine") else self.fit()


class Obfuscator(TransformerMixin, BaseEstimator):
    """Replaces every word of notes by a random near neighbour (paper A, Algorithm 1); numbers and marks go.

    Identifiers are not looked for: use `Deidentifier` first. What comes out is one step of `clinveil.release`, without
    its checks, gates and report.

    Args:
        n: neighbours to draw from: 5, or a range "3-14".
        memo: scope in which a word keeps its replacement: `occurrence` (none, as in the paper), `note`, `patient`,
            `corpus`, or `rare` (the patient's, of rare words only).
        vectors: trained vectors, or their path; without them they are trained on what `fit` gets.
        key: what draws come from; a new one is drawn without it. It is a secret, and so are `channel_`, `vectors_`.
        seed: of the training. workers: threads; with one, training is reproducible bit by bit.
        columns: `text`, `id`, `patient`, `keep`, …: which columns of a frame are what.
        settings: any other field of `VectorSettings` and `ChannelSettings` by name (epochs, algorithm, layout, …).

    Attributes (after `fit`):
        channel_, vectors_, neighbours_: P(output | input), and what it was made from. key_: the key in use.

    Source: Abdalla et al., JAMIA 2020, Algorithm 1.
    """

    def __init__(
        self,
        n: str | int = "3-14",
        *,
        memo: Memo = "patient",
        vectors: Vectors | str | Path | None = None,
        key: Key | None = None,
        seed: int = 1,
        workers: int = 1,
        columns: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.n, self.memo, self.vectors, self.key, self.seed = n, memo, vectors, key, seed
        self.workers, self.columns, self.settings = workers, columns, settings

    @in_python
    def fit(self, notes: Notes, y: Any = None) -> Self:
        """Train vectors on notes, unless some are given, and build the channel.

        Raises InputError for notes that do not fit, fewer than 50 patients (`settings={"allow_small": True}`) or too
        few words that may come out; UsageError for unknown settings.
        """
        from clinveil.channel.build import build_channel
        from clinveil.vectors.count import count_words
        from clinveil.vectors.imported import at_hand

        corpus, _ = _opened(notes, self.columns)
        how = self._channel_settings()
        self.key_ = _key(self.key)
        with scratch() as folder:
            self.vectors_: Vectors = self._vectors(corpus, folder)
            if self.vectors is not None:
                self.vectors_ = at_hand(self.vectors_, count_words(corpus, folder))
        built = build_channel(self.vectors_, how, key=self.key_, threads=self.workers)
        self.channel_: Channel = built[0]
        self.neighbours_: Neighbours = built[1]
        return self

    @in_python
    def transform(self, notes: Notes) -> Any:
        """The notes with every word replaced, of the kind that came in (a path gives an Arrow table).

        Raises InputError for notes that do not fit. Notes without text do not come out (`InputWarning`).
        """
        from clinveil.channel.apply import Obfuscator as Engine

        if not hasattr(self, "channel_"):
            raise UsageError("this Obfuscator has no channel yet", remedy="call fit(notes) first")
        corpus, back = _opened(notes, self.columns)
        engine = Engine(self.channel_, self.key_)
        done = [engine(batch) for batch in corpus.batches()]
        _say_skipped(one.tally.skipped for one in done)
        return back([one.batch for one in done])

    def _channel_settings(self) -> ChannelSettings:
        return load_settings(ChannelSettings, {"n": self.n, "memo": self.memo, **self._those(ChannelSettings)})

    def _vectors(self, corpus: Corpus, folder: Path) -> Vectors:
        from clinveil.vectors.files import load_vectors
        from clinveil.vectors.train import train

        if self.vectors is None:
            how = load_settings(VectorSettings, self._those(VectorSettings))
            return train(corpus, how, seed=self.seed, workers=self.workers, scratch=folder)
        return load_vectors(Path(self.vectors)) if isinstance(self.vectors, str | Path) else self.vectors

    def _those(self, model: type[VectorSettings] | type[ChannelSettings]) -> dict[str, Any]:
        """The settings of one room. Raises UsageError for names that neither has."""
        known = {*VectorSettings.flags(), *ChannelSettings.flags()}
        given_ = dict(self.settings or {})
        if unknown := sorted(given_.keys() - known):
            raise UsageError(f"there is no setting {unknown[0]}", remedy="see clinveil obfuscate --help for the names")
        return {name: value for name, value in given_.items() if name in model.flags()}


def _key(key: Any) -> Key:
    """A key, drawn where there is none. Raises UsageError for anything else."""
    if key is not None and not isinstance(key, Key):
        remedy = "give clinveil.Key.generate(), or Key.load(path) of a vault's key.bin"
        raise UsageError(f"a key cannot be of type {type(key).__name__}", remedy=remedy)
    return key or Key.generate()


def _opened(notes: Notes, columns: Mapping[str, Any] | None) -> tuple[Corpus, Any]:
    got = given(notes, **(columns or {}))
    return got.corpus, got.back or (lambda batches: _table(got.corpus, batches))


def _table(corpus: Corpus, batches: list[pa.RecordBatch]) -> Any:
    import pyarrow as pa

    from clinveil.corpus.write import source_names

    named = source_names(corpus.columns, corpus.suffix or ".parquet")
    return arrow(pa.Table.from_batches(batches).select(list(named.values())).rename_columns(list(named)))


def _say_skipped(reasons: Iterable[Mapping[str, int]]) -> None:
    skipped = sum(sum(one.values()) for one in reasons)
    if skipped:
        warn(f"{skipped} notes could not be treated and do not come out", InputWarning, stacklevel=3)
