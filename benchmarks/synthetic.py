"""Synthetic notes of a release: do labels, word order, layout and digits of real notes survive?

Usage: synthetic.py split NOTES LABEL FOLDER      (test.parquet: a fifth of the patients;
train.parquet)
       synthetic.py score TRAIN SYNTHETIC TEST LABEL
Notes are Parquet with the columns patient_id, text (or transcription) and LABEL. Labels of fewer
than 6 training patients are left out.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import Pipeline, make_pipeline

from clinveil.core import words
from clinveil.lm import END, UNKNOWN, WordVocabulary, joined, train_ngram
from clinveil.utility import Texts, two_sample

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
    made = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2), LogisticRegression(C=10, max_iter=2_000)
    )
    return made.fit(notes.text, notes[label])


def bits(texts: list[str], test: pd.DataFrame, vocabulary: WordVocabulary) -> np.ndarray:
    """Bits of the words of each test note under a trigram model of some texts, and their number,
    (n_notes, 2).
    """

    def encoded(text: str) -> np.ndarray:
        return np.array(
            [*vocabulary.numbers.encode(words(text), unknown=UNKNOWN), END], dtype=np.int32
        )

    notes = [encoded(text) for text in texts]
    model = train_ngram(joined(notes, np.ones(len(notes), dtype=np.int64)), vocabulary, 3)
    return np.array(
        [[-each.sum() / np.log(2), each.size] for each in model.score([*map(encoded, test.text)])]
    )


def order(notes: pd.DataFrame, pairs: Counter[tuple[str, str]]) -> float:
    """Share of adjacent headings (text before a colon at the start of a line) that are adjacent in
    real notes too.
    """
    found = [pair for text in notes.text for pair in headings(text)]
    return float(np.mean([pairs[pair] >= 5 for pair in found])) if found else float("nan")


def headings(text: str) -> list[tuple[str, str]]:
    """Return the pairs of successive headings."""
    return list(
        pairwise(match.lower() for match in re.findall(r"(?:^|\n|,)([A-Z][A-Za-z ]{2,30}):", text))
    )


def score(real: pd.DataFrame, synthetic: pd.DataFrame, test: pd.DataFrame, label: str) -> None:
    """Print the figures of real notes, synthetic ones, and words drawn independently for each
    label.
    """
    judge = classifier(real, label)
    rng = np.random.default_rng(0)
    mixed = real.copy()
    for rows in real.groupby(label).groups.values():
        drawn = iter(
            rng.permutation([word for text in real.text[rows] for word in words(text)]).tolist()
        )
        mixed.loc[rows, "text"] = [
            " ".join(islice(drawn, len(words(text)))) for text in real.text[rows]
        ]
    vocabulary = WordVocabulary(
        sorted({word for text in [*real.text, *test.text] for word in words(text)})
    )
    pairs = Counter(pair for text in real.text for pair in headings(text))
    floor = bits([*mixed.text], test, vocabulary)
    for name, notes, judged in (
        ("real", real, test),
        ("synthetic", synthetic, synthetic),
        ("floor", mixed, mixed),
    ):
        text = "".join(notes.text)
        f1 = f1_score(test[label], classifier(notes, label).predict(test.text), average="macro")
        agreement = np.mean(judge.predict(judged.text) == judged[label])
        breaks, digits = (
            1_000 * sum(map(hit, text)) / len(text) for hit in ("\n".__eq__, str.isdigit)
        )
        print(
            f"{name}: {len(notes):,} notes, macro-F1 {f1:.3f}, agreement {agreement:.3f}, ", end=""
        )
        print(
            f"breaks {breaks:.1f}, digits {digits:.1f} per 1,000, {len(text) / len(notes):,.0f}"
            " characters, ",
            end="",
        )
        print(f"heading order {order(test if name == 'real' else notes, pairs):.3f}", flush=True)
        own = bits([*notes.text], test, vocabulary)
        draws = rng.integers(len(test), size=(1_000, len(test)))
        gains = [(floor[d, 0].sum() - own[d, 0].sum()) / own[d, 1].sum() for d in draws]
        low, high = np.quantile(gains, [0.025, 0.975])
        print(
            f"  bits per word {own[:, 0].sum() / own[:, 1].sum():.3f}, gain over floor {low:.3f} to"
            f" {high:.3f}"
        )
    ids = [*map(str, range(len(real)))]
    texts = Texts(ids, ids, [*real.text], [*synthetic.text], np.full(len(synthetic), -1), 0)
    for finding in two_sample(texts, rng):
        scores = finding.scores
        assert scores is not None
        print(
            f"  told apart by {finding.labels[0]}: AUC {scores.score:.3f}, floor {scores.floor:.3f}"
        )


def read(path: str) -> pd.DataFrame:
    """Read notes."""
    return pd.read_parquet(path).rename(columns={"transcription": "text"})


if __name__ == "__main__":
    task, *given = sys.argv[1:]
    if task == "split":
        split(pd.read_parquet(given[0]), given[1], Path(given[2]))
    else:
        score(*map(read, given[:3]), given[3])
