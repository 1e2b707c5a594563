"""Invented labelled notes for tests of utility; every content word begins with `MARK`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from clinveil.corpus import MemoryCorpus

MARK = "zq"
FINDINGS = [f"{MARK}{a}{b}a" for a in "bcdfghjklm" for b in "aeiou"]
LABELS = ("heart", "lung")
SIGNS = {
    "heart": (f"{MARK}murmur", f"{MARK}angina"),
    "lung": (f"{MARK}wheeze", f"{MARK}sputum"),
}
PHRASES = {
    "heart": (f"{MARK}left {MARK}edema", f"{MARK}right {MARK}effusion"),
    "lung": (f"{MARK}right {MARK}edema", f"{MARK}left {MARK}effusion"),
}
Row = tuple[str, str, str, str]  # note id, patient id, text, label


def notes(n: int = 200, seed: int = 1, shuffled_labels: bool = False) -> list[Row]:
    """Return notes of six sentences each: signs tell little of the label, word pairs tell more."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        label = LABELS[i % 2]
        sentences = []
        for _ in range(6):
            sign = rng.choice(SIGNS[label if rng.random() < 0.2 else LABELS[rng.integers(2)]])
            phrase = rng.choice(PHRASES[label if rng.random() < 0.7 else LABELS[rng.integers(2)]])
            lead = "has no" if rng.random() < 0.5 else "has the"
            words = " ".join([*rng.choice(FINDINGS, 1), sign, phrase])
            sentences.append(f"She {lead} {words}.")
        shown = LABELS[rng.integers(2)] if shuffled_labels else label
        rows.append((f"n{i}", f"p{i // 2}", " ".join(sentences), shown))
    return rows


def corpus(rows: list[Row], label: str = "label") -> MemoryCorpus:
    """Return rows as a corpus, with the label column unless its name is empty."""
    names = ("note_id", "patient_id", "text", *((label,) if label else ()))
    columns = list(zip(*rows, strict=True)) or [()] * 4
    arrays = [pa.array(column, pa.string()) for column in columns[: len(names)]]
    return MemoryCorpus([pa.record_batch(dict(zip(names, arrays, strict=True)))])
