"""Recall and speed of the detectors on public notes: `python benchmarks/phi.py [DATA]`.

An identifier counts as found if every letter and digit of it is covered; titles (Dr.), small words
among capitals and states are ignored. Intervals are Wilson's (95 %). The figures do not transfer to
other notes; phi.md lists the data that were inspected during development. `--peers presidio=PYTHON
scrubadub=PYTHON` runs other tools on the same texts (phi_peers.py), each with an interpreter that
has it; `--final` measures on the fifth of the actors that is kept aside, once.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from numpy.random import default_rng

from clinveil.core import Span
from clinveil.lexicons import word_list
from clinveil.phi import Finder, PhiSettings, words
from clinveil.stats import wilson

STATES = word_list("states") | words(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM"
    " NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC"
)
ASIDE = {"Dr", "Mr", "Mrs", "Ms", "Miss"}
WIDE = {"GEOGRAPHIC_LOCATION", "STREET_ADDRESS"}
Spans = Sequence[tuple[int, int, str]]
Find = Callable[[Sequence[str]], list[Spans]]


class Case(NamedTuple):
    text: str
    patient_id: str
    spans: Spans


def asq(data: Path) -> Iterator[Case]:
    for line in (data / "phi/asq_phi_dev.jsonl").read_text().splitlines():
        case = json.loads(line)
        yield Case(case["text"], "p", [(s["start"], s["end"], s["type"]) for s in case["spans"]])


def presidio(data: Path) -> Iterator[Case]:
    for case in json.loads(gzip.decompress((data / "phi/presidio_synth_v2.json.gz").read_bytes())):
        spans = [(s["start_position"], s["end_position"], s["entity_type"]) for s in case["spans"]]
        yield Case(case["full_text"], "p", spans)


def aci(data: Path) -> Iterator[Case]:
    """Where the patient's names stand in the notes, and who is called a doctor there."""
    for row in rows(data / "notes/aci_bench.csv.gz"):
        patient = {row["patient_firstname"].strip(), row["patient_familyname"].strip()}
        spans = [(*m.span(), "PATIENT") for m in written(row["note"], patient)]
        doctors = re.finditer(r"\bDr\. ((?:[A-Z][\w'-]+ ?)+)", row["note"])
        yield Case(row["note"], "p", [*spans, *((*m.span(1), "DOCTOR") for m in doctors)])


def written(text: str, names: Iterable[str]) -> Iterator[re.Match[str]]:
    """Where names stand as words, as they are written."""
    if either := "|".join(re.escape(name) for name in sorted(names) if len(name) > 1):
        yield from re.finditer(rf"\b(?:{either})\b", text)


def kept_aside(identifier: str) -> bool:
    """Whether somebody is of the fifth that is looked at once, at the end."""
    return int.from_bytes(blake2b(identifier.encode(), digest_size=8).digest(), "big") % 5 == 0


def actors(data: Path, *, final: bool) -> Iterator[Case]:
    """Biographies, with the tokens of their subject's name; capitals and small letters as
    written.
    """
    for row in rows(data / "people/actors.csv.gz"):
        if kept_aside(row["id"]) == final:
            tokens = {
                token
                for token in re.findall(r"[^\W\d_]+", row["name"])
                if len(token) > 1 and token[0].isupper()
            }
            yield Case(
                row["text"], "p", [(*m.span(), "NAME") for m in written(row["text"], tokens)]
            )


def demo(folder: Path) -> Iterator[Case]:
    import pyarrow.parquet as pq

    gold = defaultdict(list)
    for line in (folder / "spans.jsonl").read_text().splitlines():
        span = json.loads(line)
        gold[span["note_id"]].append((span["start"], span["end"], span["label"]))
    for row in pq.read_table(folder / "notes.parquet").to_pylist():
        yield Case(row["text"], row["patient_id"], gold[row["note_id"]])


def grid(each: int, size: int | None) -> Iterator[Case]:
    from clinveil.utility import grid_notes, sample

    notes = (
        grid_notes(default_rng(13), each=each) if size is None else sample(default_rng(13), size)
    )
    for note in notes:
        yield Case(
            note.text,
            "p",
            [
                (s.start, s.end, (note.culture and "culture") or note.kind_of_name)
                for s in note.gold
            ],
        )


def rows(path: Path) -> Iterator[dict[str, str]]:
    csv.field_size_limit(10**9)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def needed(text: str, span: tuple[int, int, str]) -> set[int]:
    """The characters of an identifier that must be covered."""
    identifier = text[span[0] : span[1]]
    places = set()
    small = any(
        c.isupper() or c.isdigit() for c in identifier
    )  # in a name all in small letters each word counts
    for match in re.finditer(r"\w+", identifier):
        word = match[0]
        aside = (
            word in ASIDE
            or (small and word.islower() and word.isalpha())
            or (span[2] in WIDE and word in STATES)
        )
        if not aside:
            places.update(range(span[0] + match.start(), span[0] + match.end()))
    return places


def ours(finder: Finder) -> Find:
    def find(texts: Sequence[str]) -> list[Spans]:
        return [[(s.start, s.end, s.label) for s in finder.find(text, "p")] for text in texts]

    return find


def of_patients(finder: Finder, cases: Sequence[Case]) -> list[Spans]:
    """What is found where each case is a note of a known patient."""
    return [
        [(s.start, s.end, s.label) for s in finder.find(case.text, case.patient_id)]
        for case in cases
    ]


def measure(name: str, cases: Sequence[Case], all_spans: Sequence[Spans]) -> None:
    found = Counter()
    all_of = Counter()
    false = Counter()
    leaky = 0
    for case, spans in zip(cases, all_spans, strict=True):
        covered = {i for start, end, _ in spans for i in range(start, end)}
        missed = [gold for gold in case.spans if not needed(case.text, gold) <= covered]
        all_of.update(label for _, _, label in case.spans)
        found.update(label for _, _, label in case.spans)
        found.subtract(label for _, _, label in missed)
        false.update(
            k for s, e, k in spans if not any(s < end and start < e for start, end, _ in case.spans)
        )
        leaky += bool(missed)
    print(f"\n{name}: {len(cases)} notes, {share(leaky, len(cases))} with at least one miss")
    for label, count in [("all", all_of.total()), *all_of.most_common()]:
        hits = found.total() if label == "all" else found[label]
        print(f"  {label:32} {hits:6} of {count:6}  {share(hits, count)}")
    print(
        "  found where nothing is marked: "
        + (", ".join(f"{k} {n}" for k, n in false.most_common(8)) or "none")
    )
    print(f"  words that are no identifiers touched: {touched(cases, all_spans)}")
    masked = share(len(cases) - leaky, len(cases))
    print(
        f"  notes fully masked: {masked}; other characters removed: {removed(cases, all_spans)}",
        flush=True,
    )


def share(hits: int, count: int) -> str:
    if not count:
        return "none"
    low, high = wilson(hits, count)
    return f"{hits / count:.4f} [{low:.4f}, {high:.4f}]"


def touched(cases: Sequence[Case], all_spans: Sequence[Spans]) -> str:
    from clinveil.utility import score

    counts = [0, 0, 0, 0]
    for case, spans in zip(cases, all_spans, strict=True):
        gold, found = (
            [Span(start, end, "NAME") for start, end, _ in each] for each in (case.spans, spans)
        )
        done = score(case.text, gold, found)
        for place, more in enumerate(
            (done.touched, done.words, done.clinical_touched, done.clinical)
        ):
            counts[place] += more
    return f"{share(*counts[:2])}, clinical ones {share(*counts[2:])}"


def removed(cases: Sequence[Case], all_spans: Sequence[Spans]) -> str:
    """The share of letters and digits outside gold that a finder removes; small words in gold count
    as gold.
    """
    taken = total = 0
    for case, spans in zip(cases, all_spans, strict=True):
        gold = {i for start, end, _ in case.spans for i in range(start, end)}
        covered = {i for start, end, _ in spans for i in range(start, end)}
        others = {i for i, character in enumerate(case.text) if character.isalnum()} - gold
        taken += len(others & covered)
        total += len(others)
    return share(taken, total)


def hard_negatives(cases: Sequence[Case], all_spans: Sequence[Spans]) -> None:
    """Queries of ASQ-PHI without an identifier: how many a finder touches."""
    none = [spans for case, spans in zip(cases, all_spans, strict=True) if not case.spans]
    print(
        f"  hard negatives touched: {sum(map(bool, none))} of {len(none)},"
        f" {share(sum(map(bool, none)), len(none))}"
    )


def speed(texts: Sequence[str], finder: Finder) -> None:
    """Notes a second of one core: notes never read in this process, then the same notes again."""
    find = ours(finder)
    find(["Seen by Dr. Ruth Okafor on 3/4/2019 with gout."])  # the lists load
    first = passes(texts, find)
    again = passes(texts, find)
    words = sum(len(text.split()) for text in texts) / len(texts)
    print(f"\nspeed, finding only, {words:.0f} words a note, notes/s and core:")
    print(
        f"  first sight of {len(texts)} notes {len(texts) / first:.0f}, repeats"
        f" {len(texts) / again:.0f}"
    )


_PLACEHOLDER = re.compile(
    r"(?:[A-Z]|X+|x+|XYZ|Xyz|ABC\w?|Abcd?|AB|CD|Ab|Cd|Xx+|Sample|Doctor|Patient|Doe|John|Jane)"
)


def spans_to_read(texts: Sequence[str], find: Find, sample: int) -> None:
    """Print spans with 60 characters on either side, for a reader who judges them.

    Args:
        sample: number of spans of all labels (seed 20261128); 0 for all names that are neither
            placeholders nor initials.
    """
    rows = [
        (label, text[max(0, start - 60) : start], text[start:end], text[end : end + 60])
        for text, spans in zip(texts, find(texts), strict=True)
        for start, end, label in spans
    ]
    if sample:
        random.seed(20261128)
        chosen = sorted(random.sample(range(len(rows)), sample))
    else:
        chosen = [
            number
            for number, (label, _, span, _) in enumerate(rows)
            if label == "NAME"
            and not all(map(_PLACEHOLDER.fullmatch, re.findall(r"[^\W\d_]+", span)))
        ]
    print(f"{len(rows)} spans, {len(chosen)} to read")
    for number in chosen:
        label, before, span, after = rows[number]
        print(f"{label}\t{before!r} [[{span!r}]] {after!r}")


def passes(texts: Sequence[str], find: Find) -> float:
    start = time.process_time()
    find(texts)
    return time.process_time() - start


def compare(data: Path, pythons: Sequence[str], finder: Finder) -> None:
    """Our engine and other tools (`TOOL=PYTHON`) on the same texts: identifiers found, spans
    outside gold, speed.
    """
    sets = {
        "ASQ-PHI (dev)": list(asq(data)),
        "ACI-Bench, names": list(aci(data)),
        "Presidio's sentences, all classes": list(presidio(data)),
        "Presidio's sentences, persons": [
            case._replace(spans=[span for span in case.spans if span[2] == "PERSON"])
            for case in presidio(data)
        ],
        "MTSamples": [
            Case(row["transcription"], "p", []) for row in rows(data / "notes/mtsamples.csv.gz")
        ][2::30],
    }
    for name, cases in sets.items():
        texts = [case.text for case in cases]
        print(f"\n{name}, {len(cases)} texts")
        ours(finder)(texts[:3])
        start = time.process_time()
        print_row("clinveil", cases, ours(finder)(texts), time.process_time() - start)
        for tool, _, python in (pair.partition("=") for pair in pythons):
            script = str(Path(__file__).with_name("phi_peers.py"))
            done = subprocess.run(
                [python, script, tool], input=json.dumps(texts), capture_output=True, text=True
            )
            if done.returncode:
                print(f"  {tool}: does not run: {done.stderr.strip().splitlines()[-1:]}")
                continue
            answer = json.loads(done.stdout)
            print_row(
                tool,
                cases,
                [[tuple(span) for span in spans] for spans in answer["spans"]],
                answer["seconds"],
            )


def print_row(tool: str, cases: Sequence[Case], all_spans: Sequence[Spans], seconds: float) -> None:
    gold = hits = outside = leaky = 0
    for case, spans in zip(cases, all_spans, strict=True):
        covered = {i for start, end, _ in spans for i in range(start, end)}
        found = [needed(case.text, span) <= covered for span in case.spans]
        gold = gold + len(found)
        hits = hits + sum(found)
        leaky = leaky + (not all(found))
        outside += sum(
            not any(s < end and start < e for start, end, _ in case.spans) for s, e, _ in spans
        )
    total = sum(len(spans) for spans in all_spans)
    speed = f"{len(cases) / seconds:.1f} texts/s and core" if seconds else ""
    print(
        f"  {tool:16} found {hits} of {gold}, leaky {leaky}, outside gold {outside} of {total}"
        f" spans, {speed}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "data", nargs="?", type=Path, default=Path(__file__).parents[2] / "shared" / "data"
    )
    parser.add_argument(
        "--peers",
        nargs="+",
        metavar="TOOL=PYTHON",
        help="compare with tools of phi_peers.py, and stop",
    )
    parser.add_argument(
        "--final", action="store_true", help="the actors that nobody tunes on: once, at the end"
    )
    parser.add_argument(
        "--only",
        default="",
        help="sets to measure, of asq, presidio, aci, demo, grid, actors, words, speed",
    )
    parser.add_argument(
        "--second-opinion", choices=["on", "off"], default="off", help="the model of [accurate]"
    )
    parser.add_argument(
        "--read",
        type=int,
        metavar="N",
        help="print N spans of MTSamples to judge, 0 for all names, and stop",
    )
    asked = parser.parse_args()
    only = set(asked.only.split(",")) - {""}
    finder = Finder.of(PhiSettings(second_opinion=asked.second_opinion))
    find = ours(finder)
    if asked.peers:
        return compare(asked.data, asked.peers, finder)

    if asked.read is not None:
        notes = [row["transcription"] for row in rows(asked.data / "notes/mtsamples.csv.gz")]
        return spans_to_read(notes, find, asked.read)

    def wanted(name: str) -> bool:
        return not only or name in only

    if wanted("asq"):
        cases = list(asq(asked.data))
        found = find([case.text for case in cases])
        measure("ASQ-PHI (dev)", cases, found)
        hard_negatives(cases, found)
    if wanted("aci"):
        cases = list(aci(asked.data))
        measure("ACI-Bench names", cases, find([case.text for case in cases]))
    if wanted("grid"):
        cases = list(grid(1, None))
        measure("the grid", cases, find([case.text for case in cases]))
    if wanted("actors"):
        cases = list(actors(asked.data, final=asked.final))
        measure(
            "actors, " + ("the fifth kept aside" if asked.final else "four fifths"),
            cases,
            find([c.text for c in cases]),
        )
    if wanted("presidio"):
        cases = list(presidio(asked.data))
        measure(
            "presidio-research v2 (banking, many countries)",
            cases,
            find([case.text for case in cases]),
        )
    if wanted("demo"):
        with tempfile.TemporaryDirectory() as scratch:
            from clinveil.corpus import read_patients, write_demo

            folder = Path(scratch) / "demo"
            write_demo(folder, 100, 11, workers=1, force=False, progress=lambda done: None)
            cases = list(demo(folder))
            measure("demo corpus", cases, of_patients(finder, cases))
            known = Finder.of(PhiSettings(), read_patients(folder / "patients.parquet"))
            measure("demo corpus with the known patients", cases, of_patients(known, cases))
    texts = [row["transcription"] for row in rows(asked.data / "notes/mtsamples.csv.gz")]
    if only == {"speed"}:  # alone, so that no note was read before
        speed(texts[1::3][:500], finder)
    texts = texts[::4]
    if wanted("words"):
        cases = [Case(text, "p", []) for text in texts]
        print(
            f"\nMTSamples: words touched {touched(cases, find(texts))} (Dr. X and Ms. ABC among"
            " them)"
        )


if __name__ == "__main__":
    sys.exit(main())
