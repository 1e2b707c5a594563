"""Synthetic notes of a release: do labels, layout and digits of real notes survive?

Usage: synthetic.py split NOTES LABEL FOLDER      (test.parquet: a fifth of the patients; train.parquet)
       synthetic.py score TRAIN SYNTHETIC TEST LABEL
Notes are Parquet with the columns patient_id, text and LABEL. Labels of fewer than 6 training patients are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import Pipeline, make_pipeline

FEWEST = 6


def split(notes: pd.DataFrame, label: str, folder: Path) -> None:
    """Write both parts."""
    folder.mkdir(exist_ok=True)
    test = notes.patient_id.isin(sorted(notes.patient_id.unique())[::5])
    patients = notes[~test].groupby(label).patient_id.nunique()
    kept = notes[label].isin(patients.index[patients >= FEWEST])
    notes[kept & test].to_parquet(folder / "test.parquet")
    notes[kept & ~test].to_parquet(folder / "train.parquet")


def classifier(notes: pd.DataFrame, label: str) -> Pipeline:
    """TF-IDF and logistic regression."""
    made = make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), LogisticRegression(C=10, max_iter=2_000))
    return made.fit(notes.text, notes[label])


def score(real: pd.DataFrame, synthetic: pd.DataFrame, test: pd.DataFrame, label: str) -> None:
    """Print the figures of real and of synthetic notes."""
    judge = classifier(real, label)
    for name, notes, judged in (("real", real, test), ("synthetic", synthetic, synthetic)):
        text = "".join(notes.text)
        f1 = f1_score(test[label], classifier(notes, label).predict(test.text), average="macro")
        agreement = np.mean(judge.predict(judged.text) == judged[label])
        breaks, digits = (1_000 * sum(map(hit, text)) / len(text) for hit in ("\n".__eq__, str.isdigit))
        print(f"{name}: {len(notes):,} notes, macro-F1 {f1:.3f}, agreement {agreement:.3f}, ", end="")
        print(f"breaks {breaks:.1f}, digits {digits:.1f} per 1,000, {len(text) / len(notes):,.0f} characters")


if __name__ == "__main__":
    task, *given = sys.argv[1:]
    if task == "split":
        split(pd.read_parquet(given[0]), given[1], Path(given[2]))
    else:
        score(*map(pd.read_parquet, given[:3]), given[3])
