"""Macro-F1 on real notes of a classifier trained on private synthetic notes, for epsilon 1, 3 and
8.

python benchmarks/private_notes.py NOTES --label COLUMN --public FILE [--splits 5] [--writer bag]
[--notes 1000]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from clinveil.core import Key, NotesSettings, words
from clinveil.corpus import open_corpus, open_text, rows, rows_with
from clinveil.lm import (
    BagWriter,
    LabelledNote,
    Layout,
    PrivatePlan,
    PublicText,
    SteeredWriter,
    mixed,
    noisy,
    notes_per_label,
    summed,
    word_shares,
)

WRITERS = {"bag": BagWriter, "ngram": SteeredWriter}
LONGEST = 400


def score(texts, labels, test):
    """Macro-F1 of TF-IDF and logistic regression on real test notes."""
    vectors = TfidfVectorizer(analyzer=words, sublinear_tf=True, min_df=2)
    model = make_pipeline(vectors, LogisticRegression(C=10, max_iter=300)).fit(texts, labels)
    return f1_score([n.label for n in test], model.predict([n.text for n in test]), average="macro")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--label", required=True)
    parser.add_argument("--public", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--writer", choices=list(WRITERS), default="bag")
    parser.add_argument("--notes", type=int, default=1000)
    parser.add_argument("--epsilon", type=float, action="append")
    asked = parser.parse_args()
    public = PublicText.of(row.text for row in rows(open_text(asked.public)))
    corpus = open_corpus(asked.file, NotesSettings(), label=(asked.label,))
    found = [(note, label) for note, (label,) in rows_with(corpus, asked.label)]
    names = sorted({label for _, label in found})
    notes = {}
    for n, label in found:
        notes.setdefault(n.patient_id, []).append(
            LabelledNote(n.patient_id, names.index(label), n.text)
        )
    layout = Layout(len(names), len(public.ids))
    patients = sorted(notes)
    for split in range(asked.splits):
        order = np.random.default_rng(split).permutation(patients)
        test = [note for patient in order[: len(order) // 5] for note in notes[patient]]
        train = order[len(order) // 5 :]
        key = Key.from_seed(split)
        real = [note for patient in train for note in notes[patient]]
        cells = summed(real, public, layout)
        most = np.bincount([note.label for note in real]).argmax()
        majority = f1_score([n.label for n in test], [most] * len(test), average="macro")
        print(f"split {split}: {len(train)} patients, majority {majority:.3f}", flush=True)
        for epsilon in asked.epsilon or (1.0, 3.0, 8.0):
            plan = PrivatePlan.of(len(train), len(names), epsilon, None)
            plan.refuse_hopeless()
            table = noisy(cells, layout, plan.sigma, key, f"{epsilon}")
            writer = WRITERS[asked.writer](public, mixed(word_shares(table), public.frequencies))
            labels = [
                label
                for label, n in enumerate(notes_per_label(table, asked.notes))
                for _ in range(n)
            ]
            streams = (key.stream("private note", str(i)) for i in range(len(labels)))
            texts = [
                writer.write(label, stream, LONGEST)
                for label, stream in zip(labels, streams, strict=True)
            ]
            print(
                f"  {asked.writer} epsilon {epsilon:g}: {score(texts, labels, test):.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
