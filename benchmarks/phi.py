"""How much of the identifiers in public notes the detectors find, and how fast: `python benchmarks/phi.py [DATA]`.

Recall counts an identifier as found when every one of its letters and digits is covered, titles (Dr.), small words and
states left aside; intervals are Wilson's (95 %). What is printed is not a promise for other notes: the detectors were
built while looking at the misses in these data, and the demo corpus was made by the same hands.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from clinveil.core.keys import Key
from clinveil.lexicons.words import word_list
from clinveil.phi.deidentifier import Deidentifier
from clinveil.stats import wilson

STATES = word_list("states") | set(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA"
    " RI SC SD TN TX UT VT VA WA WV WI WY DC".split()
)
ASIDE = {"Dr", "Mr", "Mrs", "Ms", "Miss"}
WIDE = {"GEOGRAPHIC_LOCATION", "STREET_ADDRESS"}


class Case(NamedTuple):
    text: str
    patient_id: str
    spans: list[tuple[int, int, str]]


def asq(data: Path) -> Iterator[Case]:
    for line in (data / "phi/asq_phi_dev.jsonl").read_text().splitlines():
        case = json.loads(line)
        yield Case(case["text"], "p", [(s["start"], s["end"], s["type"]) for s in case["spans"]])


def presidio(data: Path) -> Iterator[Case]:
    for case in json.loads(gzip.decompress((data / "phi/presidio_synth_v2.json.gz").read_bytes())):
        spans = [(s["start_position"], s["end_position"], s["entity_type"]) for s in case["spans"]]
        yield Case(case["full_text"], "p", spans)


def aci(data: Path) -> Iterator[Case]:
    """Where the names of patient and doctor stand in the notes."""
    for row in rows(data / "notes/aci_bench.csv.gz"):
        names = {row["patient_firstname"].strip(), row["patient_familyname"].strip(), *row["doctor_name"].split()[-1:]}
        either = "|".join(re.escape(name) for name in names if len(name) > 1)
        places = [m.span() for m in re.finditer(rf"\b(?:{either})\b", row["note"])] if either else []
        yield Case(row["note"], "p", [(start, end, "NAME") for start, end in places])


def demo(folder: Path) -> Iterator[Case]:
    import pyarrow.parquet as pq

    gold = defaultdict(list)
    for line in (folder / "spans.jsonl").read_text().splitlines():
        span = json.loads(line)
        gold[span["note_id"]].append((span["start"], span["end"], span["label"]))
    for row in pq.read_table(folder / "notes.parquet").to_pylist():
        yield Case(row["text"], row["patient_id"], gold[row["note_id"]])


def rows(path: Path) -> Iterator[dict[str, str]]:
    csv.field_size_limit(10**9)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def needed(text: str, span: tuple[int, int, str]) -> set[int]:
    """The characters of an identifier that must be covered."""
    places = set()
    for match in re.finditer(r"\w+", text[span[0] : span[1]]):
        word = match[0]
        if not (word in ASIDE or (word.islower() and word.isalpha()) or (span[2] in WIDE and word in STATES)):
            places.update(range(span[0] + match.start(), span[0] + match.end()))
    return places


def measure(name: str, cases: Iterable[Case], deidentifier: Deidentifier) -> None:
    found, all_of, false, leaky, notes = Counter(), Counter(), Counter(), 0, 0
    for case in cases:
        spans = deidentifier.find(case.text, case.patient_id)
        covered = {i for span in spans for i in range(span.start, span.end)}
        missed = [gold for gold in case.spans if not needed(case.text, gold) <= covered]
        all_of.update(label for _, _, label in case.spans)
        found.update(label for _, _, label in case.spans)
        found.subtract(label for _, _, label in missed)
        false.update(s.label for s in spans if not any(s.start < end and start < s.end for start, end, _ in case.spans))
        leaky, notes = leaky + bool(missed), notes + 1
    print(f"\n{name}: {notes} notes, {leaky} with at least one miss ({leaky / notes:.1%})")
    for label, count in all_of.most_common():
        low, high = wilson(found[label], count)
        print(f"  {label:32} {found[label]:5} of {count:5}  {found[label] / count:.3f}  [{low:.3f}, {high:.3f}]")
    print("  found where nothing is marked: " + (", ".join(f"{k} {n}" for k, n in false.most_common()) or "none"))


def speed_and_words(data: Path, deidentifier: Deidentifier) -> None:
    """Notes a second on one core, and how many words of MTSamples (which has few real names) are called names."""
    texts = [row["transcription"] for row in rows(data / "notes/mtsamples.csv.gz")][::4]
    for text in texts:  # the lists load, the words are looked up once
        deidentifier.find(text)
    seconds = min(passes(texts, deidentifier) for _ in range(5))
    spans = [deidentifier.find(text) for text in texts]
    words = sum(len(text.split()) for text in texts)
    in_names = sum(
        len(t[s.start : s.end].split()) for t, each in zip(texts, spans, strict=True) for s in each if s.label == "NAME"
    )
    covered = sum(len(t[s.start : s.end].split()) for t, each in zip(texts, spans, strict=True) for s in each)
    rate, length = len(texts) / seconds, words / len(texts)
    print(f"\nMTSamples: {rate:.0f} notes/s on one core, best of five ({length:.0f} words a note)")
    print(f"  words in spans {covered / words:.3%}, in names {in_names / words:.3%} (Dr. X and Ms. ABC among them)")


def passes(texts: list[str], deidentifier: Deidentifier) -> float:
    start = time.process_time()
    for text in texts:
        deidentifier.find(text)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    data = parser.parse_args().data
    deidentifier = Deidentifier(Key.from_seed(1), mode="tag")
    measure("ASQ-PHI (dev)", asq(data), deidentifier)
    measure("ACI-Bench names", aci(data), deidentifier)
    measure("presidio-research v2 (banking, many countries)", presidio(data), deidentifier)
    with tempfile.TemporaryDirectory() as scratch:
        from clinveil.corpus.demo import write_demo
        from clinveil.corpus.people import read_patients

        folder = Path(scratch) / "demo"
        write_demo(folder, 100, 11, workers=1, force=False, progress=lambda done: None)
        measure("demo corpus", demo(folder), deidentifier)
        known = Deidentifier(Key.from_seed(1), mode="tag", patients=read_patients(folder / "patients.parquet"))
        measure("demo corpus with the known patients", demo(folder), known)
    speed_and_words(data, deidentifier)


if __name__ == "__main__":
    sys.exit(main())
