"""How well a language model predicts notes: perplexity as in paper C, and bits a character as a whole code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints
from clinveil.corpus.medtext import UNK
from clinveil.lm.model import Fit, LanguageModel
from clinveil.lm.notes import PlainNotes
from clinveil.lm.vocabulary import Vocabulary, WordVocabulary
from clinveil.stats import Interval, jackknife_t

SOURCE = "paper C, Table 2 (perplexity); bits a character are ours"
SPELLING = "unknown words cost their spelling too, {bits:.2f} bits a letter and for the end of the word"
STANDING = "{standing:,} words stand as <unk> in the notes: nobody knows their spelling, so it costs nothing"


@dataclass(frozen=True)
class Unknown:
    """The words of notes that a vocabulary does not know, and what it costs to spell them.

    The code is the same for all models of the same notes: each letter, and the end of the word, is one of as many
    symbols as the words of these notes have different letters, and one more; all equally likely. A byte pair vocabulary
    knows every word. A word that stands as `<unk>` in the notes cannot be charged.

    Attributes:
        words, unknown, unk_in_source: (n_notes,) running words; those that come as `<unk>`; of these, those written so.
        letters: (n_notes,) letters and ends of the unknown words, those that stand as `<unk>` apart.
    """

    words: Ints = field(repr=False)
    unknown: Ints = field(repr=False)
    unk_in_source: Ints = field(repr=False)
    letters: Ints = field(repr=False)
    symbols: int

    @property
    def bits_per_letter(self) -> float:
        """log2 of the symbols."""
        return float(np.log2(self.symbols))

    @property
    def share(self) -> float:
        """Of all words, those that come as `<unk>`."""
        return float(self.unknown.sum() / max(1, self.words.sum()))


def unknown_words(texts: tuple[str, ...], vocabulary: Vocabulary) -> Unknown:
    """Count what a vocabulary does not know of notes in MedText's form."""
    counts, letters = np.zeros((len(texts), 4), dtype=np.int64), set[str]()
    known = set(vocabulary.words[3:]) if isinstance(vocabulary, WordVocabulary) else None
    for row, text in enumerate(texts):
        words = text.split()
        letters.update(*(word for word in words if word != UNK))
        unk_in_source = sum(word == UNK for word in words)
        lost = [] if known is None else [word for word in words if word not in known and word != UNK]
        unknown = 0 if known is None else len(lost) + unk_in_source
        counts[row] = len(words), unknown, unk_in_source, sum(len(word) + 1 for word in lost)
    return Unknown(counts[:, 0], counts[:, 1], counts[:, 2], counts[:, 3], len(letters) + 1)


def perplexity_findings(
    model: LanguageModel,
    fit: Fit,
    notes: PlainNotes,
    of: str,
    *,
    control: Fit | None = None,
    more: Mapping[str, str] | None = None,
) -> list[Finding]:
    """`utility.perplexity` and `utility.bits_per_character` of notes; intervals leave out each patient in turn.

    Perplexity is the paper's, and compares within one vocabulary only. Bits a character charge unknown words with their
    spelling (`Unknown`), are the length of a code for the notes, and compare between vocabularies.

    Args:
        fit: of these notes, in this order. of: which notes, for people ("valid", "held out").
        control: how a unigram of the same training fits them, with the same vocabulary. more: labels for the details.

    Raises InputError: the perplexity is no number.
    """
    if not np.isfinite(fit.perplexity):
        raise InputError("the model's perplexity is no number", hint="train it again, with a smaller --rate")
    unknown = unknown_words(notes.texts, model.vocabulary)
    rows, patient = _rows(fit, unknown), np.unique(np.array(notes.patients, dtype=object), return_inverse=True)[1]
    own: Doubles = np.stack([np.bincount(patient, weights=column) for column in rows.T], axis=1)
    other = None if control is None else _rows(control, unknown)
    detail = _detail(model, fit, notes, of, unknown) | dict(more or {})
    control_is = str(detail.pop("control_is", "")) if control is None else "a unigram of the same notes"
    unit, found = "notes" if notes.patients == notes.note_ids else "patients", []
    for measure, value, said in (
        ("perplexity", _perplexity, {}),
        ("bits_per_character", _bits, _charged(unknown, fit)),
    ):
        low, high = _interval(own, value)
        finding = Finding(
            *(f"utility.{measure}", value(rows), len(own), "lower", low, high),
            control=None if other is None else value(other),
            source=SOURCE,
            detail=detail | said,
            unit=unit,
            method=f"none, of one of the {unit}" if low is None else f"jackknife over {unit} on the log scale, t, 95 %",
            control_is=control_is,
            control_kind=None if other is None else "negative",
        )
        found.append(finding)
    return found


def _interval(own: Doubles, value: Callable[[Doubles], float]) -> Interval | tuple[None, None]:
    """Of a positive number, over the rows of `own`; none of one row."""
    if len(own) < 2:
        return None, None
    ends = jackknife_t(own, lambda sums: float(np.log(value(sums[None]))))
    low, high = np.exp(np.clip(ends, -700, 700))  # two patients: t is 12.7
    return Interval(float(low), float(high))


def _rows(fit: Fit, unknown: Unknown) -> Doubles:
    """(n_notes, 4): nats, tokens, bits of spelling, characters."""
    spelt = unknown.letters * unknown.bits_per_letter
    return np.stack([fit.totals, fit.tokens, spelt, fit.characters], axis=1).astype(np.float64)


def _perplexity(rows: Doubles) -> float:
    return float(np.exp(-rows[:, 0].sum() / rows[:, 1].sum()))


def _bits(rows: Doubles) -> float:
    return float((-rows[:, 0].sum() / np.log(2) + rows[:, 2].sum()) / rows[:, 3].sum())


def _detail(
    model: LanguageModel, fit: Fit, notes: PlainNotes, of: str, unknown: Unknown
) -> dict[str, str | int | float]:
    detail: dict[str, str | int | float] = {"model": model.kind, "of": of, "vocabulary": model.vocabulary.kind}
    detail |= {"size": model.vocabulary.size, "tokens": int(fit.tokens.sum()), "words": int(unknown.words.sum())}
    detail |= {"unknown_words": int(unknown.unknown.sum()), "unknown_share": unknown.share}
    detail |= {"standing_unknown": int(unknown.unk_in_source.sum()), "notes": len(notes)}
    return detail


def _charged(unknown: Unknown, fit: Fit) -> dict[str, str | int | float]:
    """What of the bits is spelling, and in what code."""
    spelt = float(unknown.letters.sum() * unknown.bits_per_letter / fit.characters.sum())
    said = [SPELLING.format(bits=unknown.bits_per_letter)] if spelt else []
    if unknown.unk_in_source.any() and unknown.unknown.any():
        said.append(STANDING.format(standing=int(unknown.unk_in_source.sum())))
    detail: dict[str, str | int | float] = {"spelling_bits_per_character": spelt, "symbols": unknown.symbols}
    return detail | ({"code": "; ".join(said)} if said else {})
