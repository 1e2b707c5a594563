"""Coverage of the intervals of `clinveil validate`, on corpora resampled from annotated notes.

    python benchmarks/phi_validate.py [--patients 300] [--corpora 400] [--asq FILE] [--notes CSV]

Notes of `--notes` (columns note_id and text) have no annotations: what all detectors find is taken
for the identifiers, and the engine is a part of the detectors.

The notes are read once; a corpus is as many patients, drawn with replacement. Prints the tables of
phi-validate.md.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from clinveil.core import LABELS, Span
from clinveil.corpus import Note, Patient, many_notes
from clinveil.phi import (
    DETECTORS,
    LOCATIONS,
    STRATA,
    Finder,
    JudgedStratum,
    Location,
    NameSurvival,
    NoteView,
    Planted,
    allocation,
    locations,
    open_parts,
    recall,
    usual_forms,
)
from clinveil.stats import clopper_pearson, share_by_patient

ASQ_LABELS = {"LOCATION": "CITY", "ORGANIZATION": "HOSPITAL", "FACILITY": "HOSPITAL"}
Drop = tuple[str, float]
WEAKER: dict[str, Drop] = {
    "the rules": ("", 0.0),
    "2 % dropped": ("all", 0.02),
    "20 % of names dropped": ("NAME", 0.2),
}


def demo(patients: int, seed: int = 21) -> tuple[list[Note], dict[str, list[Span]]]:
    notes = []
    gold = {}
    for patient, written in many_notes(seed, 0, patients):
        for note in written:
            notes.append(Note(note.note_id, patient.patient_id, note.text))
            gold[note.note_id] = [Span(start, end, label) for start, end, label in note.marks]
    return notes, gold


def asq(path: Path) -> tuple[list[Note], dict[str, list[Span]]]:
    notes = []
    gold = {}
    for i, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        one = json.loads(line)
        notes.append(Note(str(i), str(i), one["text"]))
        made = [(s["start"], s["end"], ASQ_LABELS.get(s["type"], s["type"])) for s in one["spans"]]
        gold[str(i)] = [Span(a, b, label if label in LABELS else "ID") for a, b, label in made]
    return notes, gold


def unannotated(path: Path) -> list[Note]:
    with path.open(encoding="utf-8", newline="") as file:
        return [Note(row["note_id"], row["note_id"], row["text"]) for row in csv.DictReader(file)]


def dropped(spans: list[Span], drop: Drop, rng: np.random.Generator) -> list[Span]:
    label, share = drop
    return [s for s in spans if (label not in ("all", s.label)) or rng.random() >= share]


def identifiers_in(text: str, location: Location, others: list[Location], gold: list[Span]) -> int:
    """How many gold spans have a letter or digit in a location; at most 1 except for passages."""
    parts = open_parts(text, location, others)
    hit = sum(
        any(
            c.isalnum()
            for start, end in parts
            for c in text[max(span.start, start) : min(span.end, end)]
        )
        for span in gold
    )
    return min(hit, 1) if location.detected else hit


def census(
    notes: list[Note], gold: dict[str, list[Span]], found: dict[str, list[Span]]
) -> dict[str, np.ndarray]:
    """Of each patient, (stratum, identifiers) of all places."""
    usual = usual_forms(notes)
    made = defaultdict(list)
    names = list(STRATA)
    for note in notes:
        all_ = locations(NoteView(note.text), found[note.note_id], usual=usual, words=100)
        for p in all_:
            hit = identifiers_in(note.text, p, all_, gold[note.note_id])
            made[note.patient_id].append((names.index(p.stratum), hit))
    return {patient: np.array(some) for patient, some in made.items()}


def judged(hits: np.ndarray, number: int, finds: float, rng: np.random.Generator) -> list[int]:
    """Marks of so many of the locations by a reviewer who finds each identifier with probability
    `finds`.
    """
    some = rng.choice(hits, number, replace=False)
    return [int(n) for n in rng.binomial(some, finds) if n]


def of_marks(
    table: dict[str, np.ndarray],
    n_locations: int,
    corpora: int,
    rng: np.random.Generator,
    finds: float = 1.0,
) -> tuple[float, ...]:
    """Share of corpora whose own recall the interval holds; mean recall, lower end and width.

    Args:
        finds: share of the identifiers in passages that the reviewer marks, planted ones too.
    """
    patients = list(table)
    held = 0
    low = []
    width = []
    truth = []
    for _ in range(corpora):
        drawn = np.concatenate(
            [table[patients[i]] for i in rng.integers(len(patients), size=len(patients))]
        )
        by = {name: drawn[drawn[:, 0] == k, 1] for k, name in enumerate(STRATA)}
        sizes = {name: len(hits) for name, hits in by.items() if len(hits)}
        taken = allocation(sizes, n_locations)
        seen = []
        for name, size in sizes.items():
            detected = STRATA[name].detected
            hits = judged(by[name], taken[name], 1.0 if detected else finds, rng)
            seen.append(JudgedStratum(detected, size, taken[name], tuple(hits)))
        planted = n_locations // 10
        one = recall(seen, Planted(int(rng.binomial(planted, finds)), planted))
        right = sum(int(hits.sum()) for name, hits in by.items() if STRATA[name].detected)
        value = right / sum(int(hits.sum()) for hits in by.values())
        held += one.low - 1e-12 <= value <= one.high + 1e-12
        low.append(one.low)
        width.append(one.high - one.low)
        truth.append(value)
    return held / corpora, float(np.mean(truth)), float(np.mean(low)), float(np.mean(width))


def without_tagger(note: Note) -> list[Span]:
    rules = [detector for detector in DETECTORS if detector.name != "tagger"]
    return Finder(rules, propagate="note").find(note.text)


def marks_table(name: str, notes: list[Note], gold: dict[str, list[Span]], corpora: int) -> None:
    rng = np.random.default_rng(1)
    complete = {n.note_id: Finder().find(n.text) for n in notes}
    gold = gold or complete
    engines = {
        how: {note: dropped(spans, drop, rng) for note, spans in complete.items()}
        for how, drop in WEAKER.items()
    }
    engines["no tagger"] = {note.note_id: without_tagger(note) for note in notes}
    for how, found in engines.items():
        table = census(notes, gold, found)
        for n_locations, finds in ((100, 1.0), (LOCATIONS, 1.0), (400, 1.0), (LOCATIONS, 0.7)):
            held, truth, low, width = of_marks(table, n_locations, corpora, rng, finds)
            cells = (f"{held:.3f}", f"{truth:.4f}", f"{low:.3f}", f"{width:.3f}")
            print(
                f"| {name} | {how} | {n_locations} | {finds:.0%} |",
                " | ".join(cells),
                "|",
                flush=True,
            )


def shares_table(name: str, notes: list[Note], corpora: int, known: dict[str, Patient]) -> None:
    rng = np.random.default_rng(2)
    finder = Finder()
    survival = NameSurvival(known, rng)
    for note in notes:
        survival.add(note, dropped(finder.find(note.text), ("NAME", 0.1), rng))
    patients = sorted({note.patient_id for note in notes})
    counts = [survival._counts[p] for p in patients if survival._counts.get(p, {}).get("before")]
    row(
        f"{name}: known mentions",
        np.array([[c["left"], c["before"]] for c in counts]),
        corpora,
        rng,
    )
    row(
        f"{name}: known patients",
        np.array([[c["left"] > 0, 1] for c in counts]),
        corpora,
        rng,
        exact=True,
    )


def row(
    what: str, table: np.ndarray, corpora: int, rng: np.random.Generator, *, exact: bool = False
) -> None:
    truth = table[:, 0].sum() / table[:, 1].sum()
    held = 0
    used = 0
    size = min(100, len(table))
    for _ in range(corpora):
        drawn = table[rng.integers(len(table), size=size)]
        if not drawn[:, 1].sum():
            continue
        used += 1
        low, high = (
            clopper_pearson(int(drawn[:, 0].sum()), size) if exact else share_by_patient(drawn)
        )
        held += low <= truth <= high
    print(f"| {what} | {truth:.4f} | {size} | {used} | {held / used:.3f} |", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--patients", type=int, default=300)
    asked.add_argument("--corpora", type=int, default=400)
    asked.add_argument("--asq", type=Path)
    asked.add_argument("--notes", type=Path)
    how = asked.parse_args()
    sets = {"demo": demo(how.patients)} | ({"ASQ-PHI dev": asq(how.asq)} if how.asq else {})
    if how.notes:
        sets["notes"] = (unannotated(how.notes), {})
    print("\n| corpus | detections | marks | reviewer | coverage | recall | lower bound | width |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, (notes, gold) in sets.items():
        marks_table(name, notes, gold, how.corpora)
    print("\n| what | share | patients | corpora | coverage |\n| --- | ---: | ---: | ---: | ---: |")
    known = {patient.patient_id: patient for patient, _ in many_notes(21, 0, how.patients)}
    shares_table("demo", sets["demo"][0], how.corpora, known)


if __name__ == "__main__":
    main()
