"""Notes in, protected notes of the same kind out: two transformers with scikit-learn's verbs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from warnings import warn

from sklearn.base import BaseEstimator, TransformerMixin

from clinveil.api.frames import Notes, arrow, given, in_python, known_patients, scratch
from clinveil.api.spans import spans_like, triple
from clinveil.channel.policy import Scope
from clinveil.channel.settings import ChannelSettings
from clinveil.core.errors import InputWarning, UsageError
from clinveil.core.keys import Key
from clinveil.core.load_settings import load_settings
from clinveil.scale import serial
from clinveil.vectors.settings import VectorSettings

if TYPE_CHECKING:
    import pyarrow as pa

    from clinveil.channel.channel import Channel
    from clinveil.core.spans import Span
    from clinveil.corpus.corpus import Corpus
    from clinveil.corpus.people import Patient
    from clinveil.phi.deidentifier import Deidentified
    from clinveil.vectors.table import Neighbours, Vectors


class Deidentifier(TransformerMixin, BaseEstimator):
    """Finds identifiers in notes and treats them as a policy says; it has nothing to learn.

    Args:
        mode: `replace` (surrogates), `remove` or `tag` (`[NAME]`): short for a policy of that one treatment.
        patients: a patients file, a frame like it, or id -> `Patient`: the surest way to find their names.
        key: what surrogates come from; a new one is drawn without it. It is a secret.
        columns: `text`, `id`, `patient`, `keep`, …: which columns of a frame are what.
        settings: any other field of `PhiSettings` by name, as `clinveil deidentify --help` lists them: `phi_profile`,
            `phi_policy`, `find`, `votes`, `also`, `propagate`, `tagger`, `no_tagger`, `surrogates`, `markov`.

    The same key, settings and notes give the same bytes as the command.

    >>> import clinveil
    >>> clinveil.Deidentifier(mode="tag").transform(["Seen by Dr. Sarah Miller on 03/14/2021."])
    ['Seen by Dr. [NAME] on [DATE].']
    >>> clinveil.Deidentifier(settings={"phi_profile": "safe-harbor"}).transform(["Seen on 03/14/2021, aged 93."])
    ['Seen on 2021, aged 90+.']
    """

    def __init__(
        self,
        mode: Literal["replace", "remove", "tag"] = "replace",
        *,
        patients: Mapping[str, Patient] | str | Path | None = None,
        key: Key | None = None,
        columns: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.mode, self.patients, self.key, self.columns = mode, patients, key, columns
        self.settings = settings

    @in_python
    def fit(self, notes: Notes = None, y: Any = None) -> Self:
        """Draw the key, and read patients, policy and tagger.

        Raises UsageError for settings that do not fit, InputError for files that do not. Warns with InputWarning where
        a policy keeps identifiers.
        """
        from clinveil.phi.deidentifier import Deidentifier as Engine
        from clinveil.phi.settings import PhiSettings

        how = load_settings(PhiSettings, {"mode": self.mode, **_without_patients(self.settings)})
        known, self.key_ = known_patients(self.patients), _key(self.key)
        self._engine = Engine.of(how, self.key_, patients=known, keep_spans=True)
        if self._engine.policy.warning:
            warn(self._engine.policy.warning, InputWarning, stacklevel=3)
        return self

    @in_python
    def transform(self, notes: Notes) -> Any:
        """The notes without the identifiers that were found, of the kind that came in (a path gives an Arrow table).

        Raises InputError for notes that do not fit, or of none of the known patients. Warns with InputWarning where
        some of these have no note, and for notes that cannot be treated: they do not come out.
        """
        corpus, back = _opened(notes, self.columns)
        return back([one.batch for one in self._treated(corpus)])

    @in_python
    def find(self, text: str, patient: str = "") -> list[Span]:
        """The identifiers of one text: sorted spans in code points, each with `label`, `detector`, `score` and `why`.

        Args:
            patient: whose note it is, where patients are known.

        >>> import clinveil
        >>> [span] = clinveil.Deidentifier().find("Seen by Dr. Sarah Miller.")
        >>> span.start, span.end, span.label
        (12, 24, 'NAME')
        """
        found: list[Span] = self._fitted()._engine.find(text, patient)
        return found

    @in_python
    def find_all(self, notes: Notes) -> Any:
        """The identifiers of many notes, names in all notes of a patient as `transform` looks for them.

        Of a frame (or a path) a frame of its kind: note_id, start, end (code points), label, detector, score, why,
        text; of a list or series of texts a list of spans each. Either is what `clinveil.evaluate.deidentification`
        takes as `found`. It is as secret as the notes. Raises as `transform` does.

        >>> import clinveil
        >>> found = clinveil.Deidentifier().find_all(["Seen by Dr. Sarah Miller.", "No pain."])
        >>> [[span.label for span in of] for of in found]
        [['NAME'], []]
        """
        corpus, _ = _opened(notes, self.columns)
        return spans_like(notes, [one for done in self._treated(corpus) for one in done.spans or ()])

    @in_python
    def treat(self, text: str, spans: Iterable[Span | tuple[int, int, str]], patient: str = "") -> str:
        """A text in which spans, found by whomever, are treated as the policy says.

        Raises InputError for spans outside the text or of unknown labels.

        >>> import clinveil
        >>> clinveil.Deidentifier(mode="tag").treat("Ana is here.", [(0, 3, "NAME")])
        '[NAME] is here.'
        """
        from clinveil.corpus.gold import spans_of
        from clinveil.phi.policy import united

        marked = united(mark for one in spans for mark in spans_of({"": [triple(one)]}).of("", text))
        made: tuple[str, Any] = self._fitted()._engine.treat(text, marked, patient)
        return made[0]

    def _treated(self, corpus: Corpus) -> list[Deidentified]:
        from clinveil.corpus.corpus import PATIENT_ID
        from clinveil.phi.passes import check_known_patients, deidentify_corpus

        engine = self._fitted()._engine
        done: list[Deidentified] = list(deidentify_corpus(corpus, engine, serial))
        met = {patient for one in done for patient in one.batch.column(PATIENT_ID).to_pylist()}
        check_known_patients(engine.patients.keys(), met)
        _say_skipped(one.skipped for one in done)
        return done

    def _fitted(self) -> Self:
        return self if hasattr(self, "_engine") else self.fit()


def _without_patients(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    given_ = dict(settings or {})
    if wrong := sorted(given_.keys() & {"patients", "mode"}):
        raise UsageError(f"{wrong[0]} is no setting here", hint=f"Deidentifier({wrong[0]}=…)")
    return given_


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
        seed: of the training. workers: threads; with one, training by any algorithm is reproducible bit by bit.
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
        scope: Scope = "patient",
        vectors: Vectors | str | Path | None = None,
        key: Key | None = None,
        seed: int = 1,
        workers: int = 1,
        columns: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.n, self.scope, self.vectors, self.key, self.seed = n, scope, vectors, key, seed
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
            raise UsageError("this Obfuscator has no channel yet", hint="call fit(notes) first")
        corpus, back = _opened(notes, self.columns)
        engine = Engine(self.channel_, self.key_)
        done = [engine(batch) for batch in corpus.batches()]
        _say_skipped(one.tally.skipped for one in done)
        return back([one.batch for one in done])

    def _channel_settings(self) -> ChannelSettings:
        return load_settings(ChannelSettings, {"n": self.n, "scope": self.scope, **self._those(ChannelSettings)})

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
            raise UsageError(f"there is no setting {unknown[0]}", hint="see clinveil obfuscate --help for the names")
        return {name: value for name, value in given_.items() if name in model.flags()}


def _key(key: Any) -> Key:
    """A key, drawn where there is none. Raises UsageError for anything else."""
    if key is not None and not isinstance(key, Key):
        hint = "give clinveil.Key.generate(), or Key.load(path) of a vault's key.bin"
        raise UsageError(f"a key cannot be of type {type(key).__name__}", hint=hint)
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
