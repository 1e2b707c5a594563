"""Build a channel from word vectors: floor, neighbours, policy, kept and dropped words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from clinveil.channel.channel import Channel, usable
from clinveil.channel.neighbour_rows import NO_POOL, common_pool, neighbour_channel
from clinveil.channel.settings import ChannelSettings
from clinveil.core import InputError, Ints, Mask, UsageError, words
from clinveil.lexicons import word_list
from clinveil.vectors import Neighbours, Vectors, WordCounts, neighbours

FEWEST_PATIENTS = 50


def build_channel(
    vectors: Vectors,
    settings: ChannelSettings,
    *,
    threads: int,
    counts: WordCounts | None = None,
) -> tuple[Channel, Neighbours]:
    """Return the channel of the settings and its neighbour table.

    Args:
        vectors: all words are inputs; those above the rare-word floor are outputs.
        counts: word counts of the notes; required for imported vectors, which lack patient counts.

    Raises:
        InputError: too few patients or eligible words, or an unreadable word file.
    """
    eligible = output_floor(
        vectors,
        settings.min_patients,
        need=settings.n.high + 1,
        allow_small=settings.allow_small,
        counts=counts,
    )
    table = neighbours(vectors, settings.n.high, eligible=eligible, threads=threads)
    frequencies = vectors.counts
    if frequencies is None:
        known = dict(zip(counts.words, counts.counts.tolist(), strict=True)) if counts else {}
        frequencies = np.array([known.get(word, 0) for word in vectors.words], dtype=np.int64)
    pool = common_pool(frequencies, eligible) if settings.unknown == "pool" else NO_POOL
    channel = neighbour_channel(vectors.words, settings.n, table, pool)
    dropped = word_list("function") if settings.drop_stop_words else frozenset()
    dropped |= read_words(settings.drop_words) if settings.drop_words else frozenset()
    # Words that are also kept are written.
    channel = replace(channel, policy=settings.policy).dropping(dropped)
    kept = read_words(settings.keep_words) if settings.keep_words else ()
    return channel.keeping(kept), table


def read_words(path: Path) -> frozenset[str]:
    """Return the words of a file, one per line, as lookup forms. Raises InputError for a line of
    several words.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError(
            "does not exist or is not UTF-8 text", where=path.name, hint="one word per line"
        ) from None
    found: set[str] = set()
    for row, line in enumerate(lines, 1):
        forms = words(line)
        if len(forms) > 1:
            raise InputError(
                f"line {row} contains {len(forms)} words", where=path.name, hint="one word per line"
            )
        found.update(forms)
    if not found:
        raise UsageError("contains no words", where=path.name, hint="one word per line")
    return frozenset(found)


def output_floor(
    vectors: Vectors,
    min_patients: int,
    *,
    need: int,
    allow_small: bool,
    counts: WordCounts | None = None,
) -> Mask:
    """Return the words that may be outputs: usable ones that occur in the notes of at least
    `min_patients` patients.

    Args:
        vectors: their patient counts are used if they have any.
        min_patients: the floor.
        need: eligible words that the channel needs at least (N + 1: a word is never its own
            neighbour).
        allow_small: accept fewer than 50 patients (paper A: not for small data sets).
        counts: counts of the notes at hand, used for imported vectors, which have no patient
            counts.

    Returns:
        A mask of shape (n_words,).

    Raises:
        InputError: no patient counts, fewer than 50 patients, or fewer than `need` eligible words.
    """
    n_patients, patients = _patients(vectors, counts)
    if n_patients < FEWEST_PATIENTS and not allow_small:
        raise InputError(
            f"the notes describe {n_patients} patients; at least {FEWEST_PATIENTS} are required",
            hint="pass more notes, or --set channel.allow_small=true",
        )
    mask = (patients >= min_patients) & usable(vectors.words)
    if (eligible := int(mask.sum())) < need:
        raise InputError(
            f"{eligible} words occur in the notes of {min_patients} or more patients; {need} are"
            " required",
            hint="pass more notes, a smaller N or a smaller channel.min_patients",
        )
    return mask


def _patients(vectors: Vectors, counts: WordCounts | None) -> tuple[int, Ints]:
    if vectors.patients is not None and vectors.n_patients is not None:
        return vectors.n_patients, vectors.patients
    if counts is None:
        raise InputError(
            "the vectors have no patient counts of their words",
            hint="pass counts of the notes at hand",
        )
    known = dict(zip(counts.words, counts.patients.tolist(), strict=True))
    patients = (known.get(word, 0) for word in vectors.words)
    return counts.n_patients, np.fromiter(patients, dtype=np.int64, count=len(vectors))
