"""The mechanism `contextual`, slowly and readably: counting, probabilities and draws."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from channel_reference import _COIN, _MASK, _number, _secret, _unit, draw_reference

from clinveil.channel import Channel
from clinveil.channel.tables import alias_tables
from clinveil.core import Key

STOP = "."
Words = tuple[str, ...]
_BACKGROUND = 0xC2B2AE3D27D4EB4F


class PlainModel:
    """N-grams of the words of a vocabulary, counted with dictionaries.

    Args:
        notes: words and sentence ends of each note. patients, labels: of each note. vocabulary:
            words of the model, others interrupt.
        floor: patients that must share an n-gram.
    """

    def __init__(
        self,
        notes: Sequence[Words],
        patients: Sequence[str],
        labels: Sequence[str],
        vocabulary: Sequence[str],
        floor: int,
    ) -> None:
        self.vocabulary = list(vocabulary)
        known = {*vocabulary, STOP}
        counts: Counter[Words] = Counter()
        holders: dict[Words, set[str]] = defaultdict(set)
        of_label: dict[str, Counter[str]] = defaultdict(Counter)
        users: dict[tuple[str, str], set[str]] = defaultdict(set)
        having: dict[str, set[str]] = defaultdict(set)
        for note, patient, label in zip(notes, patients, labels, strict=True):
            padded = (STOP, STOP, *note)
            having[label].add(patient)
            for i, word in enumerate(padded):
                for order in (1, 2, 3):
                    ngram = padded[max(0, i + 1 - order) : i + 1]
                    if len(ngram) == order and set(ngram) <= known:
                        counts[ngram] += 1
                        holders[ngram].add(patient)
                if word in known - {STOP}:
                    of_label[label][word] += 1
                    users[label, word].add(patient)
        self.unigram = {w: counts[w,] for w in vocabulary}
        self.next: dict[Words, dict[str, int]] = defaultdict(dict)
        for ngram, count in counts.items():
            if len(ngram) > 1 and len(holders[ngram]) >= floor:
                # A sentence end is a context, and never drawn.
                self.next[ngram[:-1]][ngram[-1]] = 0 if ngram[-1] == STOP else count
        total = sum(self.unigram.values())
        self.factors: dict[str, dict[str, float]] = {}
        for label, patients_of in having.items():
            if len(patients_of) < 4 * floor:
                continue
            used = {w for w in vocabulary if len(users[label, w]) >= floor}
            own = sum(of_label[label][w] for w in used)
            every = sum(self.unigram[w] for w in used)
            self.factors[label] = {w: 1.0 for w in vocabulary} | {
                w: float(
                    np.clip(
                        (of_label[label][w] / own / (self.unigram[w] / every)) ** 0.7, 0.25, 4.0
                    )
                )
                for w in used
            }
        self._total = total
        last = {w: counts[w, STOP] if len(holders[w, STOP]) >= floor else 0 for w in vocabulary}
        ratio = total / sum(last.values())
        self.ends = {
            w: float(np.clip(last[w] / max(1, n) * ratio, 1 / 16, 2.0))
            for w, n in self.unigram.items()
        }

    def factor(self, word: str, label: str, is_last: bool) -> float:
        """Factor of a word for a label, and before a sentence end."""
        of_label = self.factors[label][word] if label in self.factors else 1.0
        return of_label * (self.ends[word] if is_last else 1.0)

    def levels(self, before: Words) -> tuple[list[tuple[float, dict[str, float]]], float]:
        """Weight and shares of each known context, the longest first, and the weight of single
        words.
        """
        found = []
        rest = 1.0
        for order in (2, 1):
            after = self.next.get(before[-order:], {})
            if n := sum(after.values()):
                weight = n / (n + 2 * len(after.keys() - {STOP}))
                found.append((weight, {w: c / n for w, c in after.items()}))
                rest *= 1 - weight
        return found, rest

    def chance(self, before: Words, word: str) -> float:
        """P(word | words before), without a label."""
        rest = 1.0
        total = 0.0
        for weight, shares in self.levels(before)[0]:
            total += rest * weight * shares.get(word, 0.0)
            rest *= 1 - weight
        return total + rest * self.unigram[word] / self._total


def context_words(text: str) -> Words:
    """Words and sentence ends of a note of the small language."""
    return tuple(re.findall(r"[a-z]+|\.", text.lower()))


def chances_reference(
    model: PlainModel,
    channel: Channel,
    word: str,
    before: Words,
    label: str,
    background: float,
    strength: float,
    is_last: bool,
) -> dict[str, float]:
    """P(output | word, words written before)."""
    steered = {
        w: model.chance(before, w) * model.factor(w, label, is_last) for w in model.vocabulary
    }
    norm = sum(steered.values())
    row = channel.ids.get(word, channel.unknown)
    share = 1.0 if row == channel.unknown else background
    found = {w: share * p / norm for w, p in steered.items()}
    if row != channel.unknown:
        outputs, probabilities = channel.row(row)
        names = [channel.words[i] for i in outputs]
        fits = [
            p * max(steered[w], 1e-9) ** strength
            for w, p in zip(names, probabilities.tolist(), strict=True)
        ]
        for name, fit in zip(names, fits, strict=True):
            found[name] += (1 - background) * fit / sum(fits)
    return found


def draw_note_reference(
    model: PlainModel,
    channel: Channel,
    note: tuple[str, str],
    label: str,
    key: Key,
    background: float,
    strength: float,
) -> str:
    """One note (id, text) of the small language as `WordObfuscator` releases it."""
    secret = _secret(key, note[0])
    written: list[str] = [STOP, STOP]
    position = 0
    source = context_words(note[1])
    for place, word in enumerate(source):
        is_last = source[place + 1 : place + 2] in ((), (STOP,))
        if word == STOP:
            if len(written) > 2 and written[-1] != STOP:
                written.append(STOP)
            continue
        row = channel.ids.get(word, channel.unknown)
        before = tuple(written[-2:])
        if row == channel.unknown or _unit(_number(secret, position ^ _COIN)) < background:
            drawn = _from_model(model, before, label, is_last, secret, position)
        elif not strength:
            alias = alias_tables(channel.indptr, channel.indices, channel.probabilities)
            drawn = draw_reference(channel, alias, row, _number(secret, position))
        else:
            own = chances_reference(model, channel, word, before, label, 0.0, strength, is_last)
            names = [channel.words[i] for i in channel.row(row)[0]]
            sums = np.cumsum([own[name] for name in names])
            chosen = np.searchsorted(sums, _unit(_number(secret, position)) * sums[-1], "right")
            drawn = names[min(int(chosen), len(names) - 1)]
        written.append(drawn)
        position += 1
    if written[-1] != STOP:
        written.append(STOP)
    return " ".join(written[2:]).replace(" .", ".")


def _from_model(
    model: PlainModel,
    before: Words,
    label: str,
    is_last: bool,
    secret: bytes,
    position: int,
) -> str:
    highest = max(model.factors[label].values()) if label in model.factors else 1.0
    highest *= 2.0 if is_last else 1.0
    for attempt in range(16_384):
        number = position ^ _BACKGROUND ^ (4 * attempt << 40)
        left = _unit(_number(secret, number))
        bits = _number(secret, number ^ (1 << 40))
        shares = {w: c / model._total for w, c in model.unigram.items()}
        for weight, after in model.levels(before)[0]:
            if left < weight:
                shares = after
                break
            left = (left - weight) / (1 - weight)
        word = _alias_draw(model, shares, bits)
        if label not in model.factors and not is_last:
            return word
        accept = _unit(_number(secret, number ^ (2 << 40))) * highest
        if accept < model.factor(word, label, is_last):
            return word
    raise AssertionError("unreachable with these factors")


def _alias_draw(model: PlainModel, shares: Mapping[str, float], bits: int) -> str:
    """The word that 64 bits draw from shares, in the order of the vocabulary."""
    place = {w: i for i, w in enumerate([*model.vocabulary, STOP])}
    words = sorted(shares, key=place.__getitem__)
    indices = np.array([place[w] for w in words], dtype=np.int32)
    shares_of = np.array([shares[w] for w in words])
    limits, others = alias_tables(np.array([0, len(words)]), indices, shares_of)
    entry, rest = divmod((bits & _MASK) * len(words), 1 << 64)
    return model.vocabulary[indices[entry] if rest < int(limits[entry]) else others[entry]]
