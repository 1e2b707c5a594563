"""Compare the classifier figure of a release with one on notes that the run never saw.

Per split, the notes of some patients are set aside before `clinveil release` runs on the others.
The release reports a figure on its own test patients. This script trains a classifier of its own
(scikit-learn, without code of clinveil) on the released notes and on the real notes of the training
patients, and tests both on the notes that were set aside.
Attacks are not run: they do not change utility.

    python benchmarks/honest_utility.py NOTES.csv --label COLUMN --kinds deidentified synthetic
    obfuscated
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

from clinveil.releases import ReleaseSettings, pipeline

DRAWS = 200
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
    return [
        Note(row["note_id"], row.get("patient_id") or row["note_id"], row["text"], row[label])
        for row in rows
    ]


def write(path: Path, notes: Sequence[Note]) -> None:
    """Write notes as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("note_id", "patient_id", "text", "label"))
        writer.writerows((note.note, note.patient, note.text, note.label) for note in notes)


def predicted(train: Sequence[Note], test: Sequence[Note], classes: set[str]) -> list[str]:
    """Return the classes that a linear classifier on words predicts."""
    features = TfidfVectorizer(token_pattern=r"[^\W\d_]+", min_df=2, sublinear_tf=True)
    model = LogisticRegression(C=10.0, max_iter=500)
    labels = [merged(note, classes) for note in train]
    model.fit(features.fit_transform([note.text for note in train]), labels)
    return [str(label) for label in model.predict(features.transform([note.text for note in test]))]


def merged(note: Note, classes: set[str]) -> str:
    """Return the class of a note; small classes are one."""
    return note.label if note.label in classes else "other"


def macro_f1(truth: Sequence[str], guess: Sequence[str]) -> float:
    """Return the mean F1 over classes."""
    return float(f1_score(truth, guess, average="macro"))


def ratio(
    notes: Sequence[Note], truth: Sequence[str], released: Sequence[str], real: Sequence[str]
) -> tuple[float, float, float]:
    """Return the share of real, with a bootstrap interval over patients."""
    rng = np.random.default_rng(0)
    owner = np.unique(
        np.array([note.patient for note in notes], dtype=object), return_inverse=True
    )[1]
    of_patient = [np.flatnonzero(owner == number) for number in range(owner.max() + 1)]
    columns = [np.array(side, dtype=object) for side in (truth, released, real)]
    draws = []
    for _ in range(DRAWS):
        rows = np.concatenate(
            [of_patient[k] for k in rng.integers(len(of_patient), size=len(of_patient))]
        )
        drawn_truth, drawn_released, drawn_real = (column[rows] for column in columns)
        draws.append(macro_f1(drawn_truth, drawn_released) / macro_f1(drawn_truth, drawn_real))
    low, high = np.quantile(draws, (0.025, 0.975))
    return macro_f1(truth, released) / macro_f1(truth, real), float(low), float(high)


def classes_of(training: Sequence[Note], tested: Sequence[Note]) -> set[str]:
    """Return the classes that the release's own figure does not merge."""
    sizes = [
        Counter(label for _, label in {(n.patient, n.label) for n in side})
        for side in (training, tested)
    ]
    return {label for label in sizes[0] if min(size[label] for size in sizes) >= PER_CLASS}


def measure(
    notes: Sequence[Note], kind: str, key: int, unseen: int, folder: Path
) -> dict[str, float]:
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
    settings = ReleaseSettings.model_validate(
        {"kind": kind, "seed": key, "label": ("label",), "workers": 1}
    )
    pipeline.release(folder / "given.csv", out, settings)
    findings = json.loads((out / "vault/findings.json").read_text(encoding="utf-8"))["findings"]
    (page,) = (f["scores"] for f in findings if f["measure"] == "utility.transfer")
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
    truth = [merged(note, classes) for note in never_seen]
    of_released, of_real = (predicted(side, never_seen, classes) for side in (released, training))
    share, low, high = ratio(never_seen, truth, of_released, of_real)
    return {
        "page": page["of_ceiling"],
        "low": page["of_ceiling_low"],
        "high": page["of_ceiling_high"],
        "unseen": share,
        "unseen_low": low,
        "unseen_high": high,
        "floor": page["floor"] / page["ceiling"],
    }


def inside(row: dict[str, float]) -> bool:
    """Return whether the figure on unseen notes is inside the interval of page one."""
    return row["low"] <= row["unseen"] <= row["high"]


def overlap(row: dict[str, float]) -> bool:
    """Return whether both intervals have a common value."""
    return row["low"] <= row["unseen_high"] and row["unseen_low"] <= row["high"]


def main() -> None:
    """Print one line per release and one per kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notes", type=Path)
    parser.add_argument("--label", required=True)
    parser.add_argument("--kinds", nargs="+", default=["deidentified", "synthetic", "obfuscated"])
    parser.add_argument(
        "--keys", type=int, nargs="+", default=[1, 2, 3, 4, 5], help="one split and key each"
    )
    parser.add_argument("--unseen", type=int, default=600, help="notes that are set aside")
    args = parser.parse_args()
    pipeline.attacked = lambda *_, **__: []
    notes = read(args.notes, args.label)
    print(
        "kind key | page one (interval) | unseen notes (interval) | difference | floor | inside |"
        " overlap"
    )
    for kind in args.kinds:
        rows = []
        for key in args.keys:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(row := measure(notes, kind, key, args.unseen, Path(folder)))
            print(
                f"{kind} {key} | {row['page']:.1%} ({row['low']:.1%} to {row['high']:.1%}) | "
                f"{row['unseen']:.1%} ({row['unseen_low']:.1%} to {row['unseen_high']:.1%}) | "
                f"{100 * (row['page'] - row['unseen']):+.1f} | {row['floor']:.1%} | "
                f"{'yes' if inside(row) else 'no'} | {'yes' if overlap(row) else 'no'}",
                flush=True,
            )
        means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        print(
            f"{kind} mean of {len(rows)} | {means['page']:.1%} | {means['unseen']:.1%} | "
            f"{100 * (means['page'] - means['unseen']):+.1f} | {means['floor']:.1%} | "
            f"{sum(map(inside, rows))} of {len(rows)} | {sum(map(overlap, rows))} of {len(rows)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
