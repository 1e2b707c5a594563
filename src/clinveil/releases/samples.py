"""Sample notes: released excerpts for the report, and source notes aligned with their released
versions for the vault.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest

import pyarrow as pa
from numpy.random import Generator

from clinveil.channel import Channel, WordObfuscator
from clinveil.core import Key, Kind, lookup_form, tokenize, words
from clinveil.corpus import TEXT, Corpus, Note, memory_corpus, rows, rows_with
from clinveil.phi import NoteDeidentifier
from clinveil.report import AlignedNote, AlignedToken, Mark

# notes shown, and characters shown of each
SAMPLED = 12
LONGEST = 2500
EXCERPTS = 3
WORDS = 25


@dataclass(frozen=True)
class SampledNote:
    """One note as pieces: (source text, text that entered the channel, whether it was an
    identifier).
    """

    note_id: str
    patient_id: str
    pieces: Sequence[tuple[str, str, bool]]
    label: str | None = None

    @property
    def entered(self) -> str:
        """The text that entered the channel."""
        return "".join(entered for _, entered, _ in self.pieces)


def sources(
    corpus: Corpus,
    rng: Generator,
    deidentifier: NoteDeidentifier | None,
    size: int = SAMPLED,
    label: str = "",
) -> list[SampledNote]:
    """Draw a simple random sample of notes (reservoir) and treat them as in the run.

    label: column that steers the draws; "" for none.
    """
    chosen: list[tuple[Note, tuple[str | None, ...]]] = []
    notes = rows_with(corpus, *([label] if label else []))
    for seen, row in enumerate(pair for pair in notes if pair[0].text):
        slot = seen if seen < size else int(rng.integers(seen + 1))
        if slot < size:
            chosen[slot : slot + 1] = [row]
    sample = []
    for (note_id, patient_id, text), labels in sorted(chosen):
        spans = deidentifier.find(text, patient_id, note_id) if deidentifier else []
        surrogates = deidentifier.treated(text, spans, patient_id) if deidentifier else []
        pieces = list[tuple[str, str, bool]]()
        position = 0
        for span, surrogate in zip(spans, surrogates, strict=True):
            between = text[position : span.start]
            pieces += [
                (between, between, False),
                (text[span.start : span.end], surrogate.text, True),
            ]
            position = span.end
        sample.append(
            SampledNote(
                note_id,
                patient_id,
                [*pieces, (text[position:], text[position:], False)],
                next(iter(labels), None),
            )
        )
    return sample


def aligned(notes: Sequence[SampledNote], obfuscator: WordObfuscator) -> list[AlignedNote]:
    """Apply the channel as in the release (same key, same draws) and align source and output."""
    if not notes:
        return []
    batch = next(memory_corpus([(n.note_id, n.patient_id, n.entered) for n in notes]).batches())
    model = obfuscator.channel.context
    if model is not None and model.label:
        labels = pa.array([None if n.label is None else str(n.label) for n in notes], pa.string())
        batch = batch.append_column(model.label, labels)
    texts = obfuscator(batch).batch.column(TEXT).to_pylist()
    sides = zip(notes, texts, strict=True)
    return _numbered(_tokens(note, text, obfuscator.channel) for note, text in sides)


def as_treated(notes: Sequence[SampledNote]) -> list[AlignedNote]:
    """Align notes in which only identifiers changed."""
    return _numbered(map(_treated, notes))


def _numbered(notes: Iterable[Iterator[AlignedToken]]) -> list[AlignedNote]:
    return [
        AlignedNote(f"Sampled note {number}", tuple(tokens))
        for number, tokens in enumerate(notes, 1)
    ]


def _treated(note: SampledNote) -> Iterator[AlignedToken]:
    shown = 0
    for source, entered, identifier in note.pieces:
        if shown >= LONGEST:
            return
        if identifier:
            yield AlignedToken(source, entered, "phi")
        else:
            for line, text in enumerate(source[: LONGEST - shown].splitlines()):
                yield from [AlignedToken("\n", "", "dropped")] if line else []
                yield from (AlignedToken(word, word, "kept") for word in text.split())
        shown += len(source)


def _tokens(note: SampledNote, released: str, channel: Channel) -> Iterator[AlignedToken]:
    """Yield the source tokens in order, each with its released text; an identifier is one token.

    A long note is cut only after treatment, so that the shown text is what was released.
    """
    spans = channel.released_spans(note.entered)
    written = {start: word for (start, _), word in zip(spans, words(released), strict=True)}
    position = 0
    for source, entered, identifier in note.pieces:
        if position >= LONGEST:
            return
        if identifier:
            out = [written[s] for s in range(position, position + len(entered)) if s in written]
            yield AlignedToken(source, " ".join(out), "phi")
        else:
            yield from _plain(source, position, written, channel)
        position += len(entered)


def _plain(
    text: str, position: int, written: dict[int, str], channel: Channel
) -> Iterator[AlignedToken]:
    for token in tokenize(text):
        if position + token.start >= LONGEST:
            return
        source = text[token.start : token.end]
        if token.kind == Kind.SPACE:
            yield from (AlignedToken("\n", "", "dropped") for _ in range(source.count("\n")))
        elif token.kind == Kind.WORD:
            released = written.get(position + token.start, "")
            form = lookup_form(source)
            mark: Mark = (
                "kept" if form in channel.kept else "replaced" if form in channel.ids else "unknown"
            )
            yield AlignedToken(source, released, mark if released else "dropped")
        else:
            yield AlignedToken(source, "", "dropped")


def excerpts(released: Corpus, key: Key) -> list[str]:
    """Return about 25 words each of three released notes, chosen by the key; long notes are cut at
    sentences.
    """
    drawn = (
        (key.digest("excerpt", note.note_id), note.text)
        for note in rows(released)
        if note.text.strip()
    )
    return [_piece(text, rank) for rank, text in nsmallest(EXCERPTS, drawn)]


def _piece(text: str, rank: int) -> str:
    """Return a run of words that starts at a sentence, if the note has sentences."""
    pieces = text.split()
    starts = [
        0,
        *(i for i, word in enumerate(pieces, 1) if word.endswith(".") and i + WORDS <= len(pieces)),
    ]
    if len(starts) == 1 and len(pieces) > WORDS:  # no sentences
        starts = [*range(len(pieces) - WORDS)]
    begin = starts[rank % len(starts)]
    piece = " ".join(pieces[begin : begin + WORDS])
    return piece + (" …" if begin + WORDS < len(pieces) else "")
