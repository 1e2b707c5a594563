"""Two transformers with scikit-learn's interface: `Deidentifier` and `Obfuscator`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from warnings import warn

from sklearn.base import BaseEstimator, TransformerMixin

from clinveil.api.frames import NoteRoles, Notes, known_patients, scratch, table_of
from clinveil.api.spans import spans_like, triple
from clinveil.channel import ChannelSettings
from clinveil.core import InputWarning, Key, Settings, UsageError, flattened, group, load_settings
from clinveil.scale import serial
from clinveil.vectors import VectorSettings

if TYPE_CHECKING:
    from clinveil.channel import Channel
    from clinveil.core import Span
    from clinveil.corpus import Corpus, Patient
    from clinveil.phi import TreatedBatch
    from clinveil.vectors import Neighbours, Vectors


class Deidentifier(TransformerMixin, BaseEstimator):
    """Detect identifiers in notes and treat them by a policy; nothing is learned in `fit`.

    Args:
        mode: `replace` (surrogates), `remove` or `tag` (`[NAME]`): a policy with a single
            treatment.
        patients: a patients file, a frame like it, or id -> `Patient`: the most reliable way to
            detect their names.
        key: the secret key that surrogates are derived from; by default a new one.
        columns: `text`, `id`, `patient`, `keep`, …: the column roles of a frame.
        settings: any other field of `PhiSettings` by name, as listed by `clinveil deidentify
            --help`: `phi_profile`, `phi_policy`, `also`, `propagate`, `tagger`, `no_tagger`.

    The same key, settings and notes give the same bytes as the command.

    >>> import clinveil
    >>> clinveil.Deidentifier(mode="tag").transform(["Seen by Dr. Sarah Miller on 03/14/2021."])
    ['Seen by Dr. [NAME] on [DATE].']
    >>> by_rule = clinveil.Deidentifier(settings={"phi_profile": "safe-harbor"})
    >>> by_rule.transform(["Seen on 03/14/2021, aged 93."])
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
        self.mode = mode
        self.patients = patients
        self.key = key
        self.columns = columns
        self.settings = settings

    def fit(self, notes: Notes = None, y: Any = None) -> Self:
        """Create the key, and read patients, policy and tagger.

        Raises UsageError for invalid settings, InputError for invalid files. Warns with
        InputWarning if the policy keeps identifiers.
        """
        from clinveil.phi import NoteDeidentifier, PhiSettings

        settings = dict(self.settings or {})
        if wrong := sorted(settings.keys() & {"patients", "mode"}):
            raise UsageError(
                f"{wrong[0]} is not a setting", hint=f"pass Deidentifier({wrong[0]}=…)"
            )
        how = load_settings(PhiSettings, {"mode": self.mode, **settings})
        known = known_patients(self.patients)
        self.key_ = _key(self.key)
        self._engine = NoteDeidentifier.of(how, self.key_, patients=known, keep_spans=True)
        if self._engine.policy.warning:
            warn(self._engine.policy.warning, InputWarning, stacklevel=4)
        return self

    def transform(self, notes: Notes) -> Any:
        """Return notes of the same type with detected identifiers treated (an Arrow table for a
        path).

        Raises InputError for invalid notes, or if no known patient has a note. Warns with
        InputWarning if some known patients have no note, and about notes that cannot be treated:
        they are dropped.
        """
        corpus, back = _opened(notes, self.columns)
        return back([treated.batch for treated in self._treated(corpus)])

    def find(self, text: str, patient: str = "") -> list[Span]:
        """Return the identifiers of one text: sorted spans in code points with `label`, `detector`,
        `score` and `why`.

        Args:
            patient: the patient id of the note, for known patients.

        >>> import clinveil
        >>> [span] = clinveil.Deidentifier().find("Seen by Dr. Sarah Miller.")
        >>> span.start, span.end, span.label
        (12, 24, 'NAME')
        """
        return list(self._fitted()._engine.find(text, patient))

    def find_all(self, notes: Notes) -> Any:
        """Return the identifiers of many notes, including names propagated over a patient's notes
        as in `transform`.

        For a frame (or a path) the result is a frame of the same library: note_id, start, end (code
        points), label, detector, score, why, text. For a list or series it is a list of spans per
        text. Both can be passed as `found` to `clinveil.evaluate.deidentification`. The result is
        as secret as the notes. Raises like `transform`.

        >>> import clinveil
        >>> found = clinveil.Deidentifier().find_all(["Seen by Dr. Sarah Miller.", "No pain."])
        >>> [[span.label for span in of] for of in found]
        [['NAME'], []]
        """
        corpus, _ = _opened(notes, self.columns)
        return spans_like(
            notes, [one for done in self._treated(corpus) for one in done.spans or ()]
        )

    def treat(
        self, text: str, spans: Iterable[Span | tuple[int, int, str]], patient: str = ""
    ) -> str:
        """Return a text with the given spans, from any source, treated by the policy.

        Raises InputError for spans outside the text or of unknown labels.

        >>> import clinveil
        >>> clinveil.Deidentifier(mode="tag").treat("Ana is here.", [(0, 3, "NAME")])
        '[NAME] is here.'
        """
        from clinveil.corpus import spans_of
        from clinveil.phi import united

        marked = united(
            mark for one in spans for mark in spans_of({"": [triple(one)]}).of("", text)
        )
        made: tuple[str, Any] = self._fitted()._engine.treat(text, marked, patient)
        return made[0]

    def _treated(self, corpus: Corpus) -> list[TreatedBatch]:
        from clinveil.corpus import PATIENT_ID
        from clinveil.phi import check_known_patients, deidentify_corpus

        engine = self._fitted()._engine
        done: list[TreatedBatch] = list(deidentify_corpus(corpus, engine, serial))
        met = {patient for one in done for patient in one.batch.column(PATIENT_ID).to_pylist()}
        check_known_patients(engine.patients.keys(), met)
        _warn_skipped(one.skipped for one in done)
        return done

    def _fitted(self) -> Self:
        return self if hasattr(self, "_engine") else self.fit()


class ObfuscatorSettings(Settings):
    """Settings of `Obfuscator`."""

    vectors: VectorSettings = group(VectorSettings)
    channel: ChannelSettings = group(ChannelSettings)


class Obfuscator(TransformerMixin, BaseEstimator):
    """Replace every word of notes with a random near neighbour (paper A, Algorithm 1); numbers and
    punctuation are
    dropped.

    Identifiers are not detected: use `Deidentifier` first. This is one step of `clinveil.release`,
    without its checks, gates and report.

    Args:
        n: neighbours to draw from: 5, or a range "3-14".
        vectors: trained vectors, or their path; by default they are trained in `fit`.
        key: the secret key for random draws; by default a new one. `channel_` and `vectors_` are
            secret too.
        seed: of the training. workers: threads; with one, training is reproducible bit by bit for
            every algorithm.
        columns: `text`, `id`, `patient`, `keep`, …: the column roles of a frame.
        settings: other settings of `vectors` and `channel`: `{"vectors": {"epochs": 2}}`.

    Attributes (after `fit`):
        channel_, vectors_, neighbours_: P(output | input), and the data it was built from. key_:
            the key in use.

    Source: Abdalla et al., JAMIA 2020, Algorithm 1.
    """

    def __init__(
        self,
        n: str | int = "3-14",
        *,
        vectors: Vectors | str | Path | None = None,
        key: Key | None = None,
        seed: int = 1,
        workers: int = 1,
        columns: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.n = n
        self.vectors = vectors
        self.key = key
        self.seed = seed
        self.workers = workers
        self.columns = columns
        self.settings = settings

    def fit(self, notes: Notes, y: Any = None) -> Self:
        """Train vectors on notes, unless given, and build the channel.

        Raises InputError for invalid notes, fewer than 50 patients (unless
        `settings={"channel": {"allow_small": True}}`) or too few possible output words; UsageError
        for unknown settings.
        """
        from clinveil.channel import build_channel
        from clinveil.vectors import at_hand, count_words

        corpus, _ = _opened(notes, self.columns)
        settings = self._settings()
        self.key_ = _key(self.key)
        with scratch() as folder:
            self.vectors_: Vectors = self._vectors(corpus, settings.vectors, folder)
            if self.vectors is not None:
                self.vectors_ = at_hand(self.vectors_, count_words(corpus, folder))
        built = build_channel(self.vectors_, settings.channel, threads=self.workers)
        self.channel_: Channel = built[0]
        self.neighbours_: Neighbours = built[1]
        return self

    def transform(self, notes: Notes) -> Any:
        """Return notes of the same type with every word replaced (an Arrow table for a path).

        Raises InputError for invalid notes. Notes without text are dropped (`InputWarning`).
        """
        from clinveil.channel import WordObfuscator

        if not hasattr(self, "channel_"):
            raise UsageError("this Obfuscator is not fitted", hint="call fit(notes) first")
        corpus, back = _opened(notes, self.columns)
        engine = WordObfuscator(self.channel_, self.key_)
        done = [engine(batch) for batch in corpus.batches()]
        _warn_skipped(one.tally.skipped for one in done)
        return back([one.batch for one in done])

    def _vectors(self, corpus: Corpus, settings: VectorSettings, folder: Path) -> Vectors:
        from clinveil.vectors import load_vectors, train

        if self.vectors is None:
            return train(corpus, settings, seed=self.seed, workers=self.workers, scratch=folder)
        return (
            load_vectors(Path(self.vectors))
            if isinstance(self.vectors, str | Path)
            else self.vectors
        )

    def _settings(self) -> ObfuscatorSettings:
        """Return all settings. Raises UsageError for unknown names."""
        given = flattened(ObfuscatorSettings, self.settings or {})
        return load_settings(ObfuscatorSettings, {"channel.n": self.n, **given})


def _key(key: Any) -> Key:
    """Return the key, or a new one for None. Raises UsageError for other types."""
    if key is not None and not isinstance(key, Key):
        hint = "pass clinveil.Key.generate(), or Key.load(path) of a vault's key.bin"
        raise UsageError(f"a key cannot be of type {type(key).__name__}", hint=hint)
    return key or Key.generate()


def _opened(notes: Notes, columns: Mapping[str, Any] | None) -> tuple[Corpus, Any]:
    """Return the corpus of notes, and the conversion of treated batches to the caller's type (a
    table for a path).
    """
    corpus, back = NoteRoles.of(columns or {}).opened(notes)
    return corpus, back or partial(table_of, corpus)


def _warn_skipped(reasons: Iterable[Mapping[str, int]]) -> None:
    skipped = sum(sum(one.values()) for one in reasons)
    if skipped:
        warn(f"{skipped} notes could not be treated and were dropped", InputWarning, stacklevel=3)
