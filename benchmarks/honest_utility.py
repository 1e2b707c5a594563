"""Compare the classifier figure of a release with one on notes that the run never saw.

Per split, the notes of some patients are set aside before `clinveil release` runs on the others. The release reports a
figure on its own test patients. This script trains a classifier of its own (scikit-learn, without code of clinveil) on
the released notes and on the real notes of the training patients, and tests both on the notes that were set aside.
Attacks are not run: they do not change utility.

    python benchmarks/honest_utility.py NOTES.csv --label COLUMN --kinds deidentified synthetic obfuscated --splits 5
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from clinveil.releases import pipeline
from clinveil.releases.settings import ReleaseSettings

PER_CLASS = 5  # patients of a class on each side, as in the release's own figure


@dataclass(frozen=True)
class Note:
    """One note; without a patient column each note is a patient."""

    note: str
    patient: str
    text: str
    label: str


def read(path: Path, label: str) -> list[Note]:
    """Read notes with a label."""
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        csv.field_size_limit(10**9)
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    return [Note(row["note_id"], row.get("patient_id") or row["note_id"], row["text"], row[label]) for row in rows]


def write(path: Path, notes: Sequence[Note]) -> None:
    """Write notes as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("note_id", "patient_id", "text", "label"))
        writer.writerows((note.note, note.patient, note.text, note.label) for note in notes)


def score(train: Sequence[Note], test: Sequence[Note], classes: set[str]) -> float:
    """Return the macro-F1 of a linear classifier on words and word pairs."""
    features = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    model = LogisticRegression(C=10.0, max_iter=500)
    named = [(note.text, note.label if note.label in classes else "other") for note in train]
    model.fit(features.fit_transform([text for text, _ in named]), [label for _, label in named])
    truth = [note.label if note.label in classes else "other" for note in test]
    guess = model.predict(features.transform([note.text for note in test]))
    return float(f1_score(truth, guess, average="macro"))


def classes_of(training: Sequence[Note], tested: Sequence[Note]) -> set[str]:
    """Return the classes that the release's own figure does not merge."""
    sizes = [Counter(label for _, label in {(n.patient, n.label) for n in side}) for side in (training, tested)]
    return {label for label in sizes[0] if min(size[label] for size in sizes) >= PER_CLASS}


def measure(notes: Sequence[Note], kind: str, key: int, unseen: int, folder: Path) -> dict[str, float]:
    """Run one release, and return both figures as shares of real."""
    patients = sorted({note.patient for note in notes})
    random.Random(1000 + key).shuffle(patients)
    aside: set[str] = set()
    count = Counter(note.patient for note in notes)
    while sum(count[patient] for patient in aside) < unseen:
        aside.add(patients.pop())
    given = [note for note in notes if note.patient not in aside]
    never_seen = [note for note in notes if note.patient in aside]
    write(folder / "given.csv", given)
    out = folder / f"{kind}-{key}"
    settings = ReleaseSettings.model_validate({"kind": kind, "seed": key, "label": ("label",), "workers": 1})
    pipeline.release(folder / "given.csv", out, settings)
    findings = json.loads((out / "vault/findings.json").read_text(encoding="utf-8"))["findings"]
    (page,) = (f["detail"] for f in findings if f["measure"] == "utility.transfer")
    table = pq.read_table(out / "vault/test_patients.parquet").to_pylist()
    tested = {row["patient_id"] for row in table if row["held_out"]}
    source = {note.note: note for note in given}
    released = read(out / "vault/refused/notes.csv", "label")
    if kind != "synthetic":
        ids = pq.read_table(out / "vault/crosswalk.parquet").to_pylist()
        of = {row["note_id"]: source[row["source_note_id"]] for row in ids}
        released = [note for note in released if of[note.note].patient not in tested]
    training = [note for note in given if note.patient not in tested]
    classes = classes_of(training, [note for note in given if note.patient in tested])
    real, share = score(training, never_seen, classes), score(released, never_seen, classes)
    return {
        "page": page["of_ceiling"],
        "low": page["of_ceiling_low"],
        "high": page["of_ceiling_high"],
        "unseen": share / real,
        "floor": page["floor"] / page["ceiling"],
        "real_page": page["ceiling"],
        "real_unseen": real,
    }


def main() -> None:
    """Print one line per release and one per kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--label", required=True)
    parser.add_argument("--kinds", nargs="+", default=["deidentified", "synthetic", "obfuscated"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--unseen", type=int, default=600, help="notes that are set aside")
    args = parser.parse_args()
    pipeline.attacked = lambda *_, **__: []
    notes = read(args.notes, args.label)
    print("kind key | page one (interval) | unseen notes | difference | floor | inside")
    for kind in args.kinds:
        rows = []
        for key in range(1, args.splits + 1):
            with tempfile.TemporaryDirectory() as folder:
                rows.append(row := measure(notes, kind, key, args.unseen, Path(folder)))
            inside = row["low"] <= row["unseen"] <= row["high"]
            print(
                f"{kind} {key} | {row['page']:.1%} ({row['low']:.1%} to {row['high']:.1%}) | {row['unseen']:.1%} | "
                f"{100 * (row['page'] - row['unseen']):+.1f} | {row['floor']:.1%} | {'yes' if inside else 'no'}",
                flush=True,
            )
        means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        inside_all = sum(row["low"] <= row["unseen"] <= row["high"] for row in rows)
        print(
            f"{kind} mean of {len(rows)} | {means['page']:.1%} | {means['unseen']:.1%} | "
            f"{100 * (means['page'] - means['unseen']):+.1f} | {means['floor']:.1%} | {inside_all} of {len(rows)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
