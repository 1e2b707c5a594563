"""S-PDTP without the model: what its synthetic notes give away, through n-grams of them (paper C, footnote 6)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clinveil.attacks.models.leaveout.data import AuditData
from clinveil.core.files import save_array
from clinveil.core.keys import Key
from clinveil.lm.model import LanguageModel, Logs
from clinveil.lm.models.ngram import Ngram
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.sampling import SamplingConfig, batch_size_for, generate
from clinveil.lm.vocabulary import END, Vocabulary


def logs_from_text(model: LanguageModel, data: AuditData, words: int, seed: int, folder: Path) -> list[Logs]:
    """Write notes under the model, count their n-grams, score the units with those; the text stays in the folder."""
    from clinveil.attacks.models.leaveout.members import units_logs

    lengths = data.encoded.lengths
    notes = written(model, words, seed, SamplingConfig(batch_size_for(len(lengths)), int(lengths.max())))
    save_array(folder / "text-ids.npy", notes.ids)
    return units_logs(Ngram(notes, data.vocabulary), data)


def written(model: LanguageModel, tokens: int, seed: int, drawing: SamplingConfig, *, threads: int = 1) -> EncodedNotes:
    """Synthetic notes of so many tokens, under the key of a public seed: for audits, never for release."""
    end = np.array([END], dtype=np.int32)
    rows, made = [], 0
    with model.ready(threads=threads):
        for note in generate(model, Key.from_seed(seed), drawing):
            rows.append(np.concatenate([note.ids, end]))
            made += rows[-1].size  # with its end: notes without a word come to an end too
            if made >= tokens:
                break
    return of_rows(rows, model.vocabulary)


def of_rows(rows: list[np.ndarray[tuple[int], np.dtype[np.int32]]], vocabulary: Vocabulary) -> EncodedNotes:
    """Notes from their tokens, ends included."""
    offsets = np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)
    characters = np.array([len(vocabulary.decode(row.tolist())) + 1 for row in rows], dtype=np.int64)
    return EncodedNotes(np.concatenate(rows), offsets, characters)
