"""Paper B's study on public biographies of members of the United States Congress.

The biographies are public, so attacking real names does no harm. A header line with the full name
precedes each text, as on a consultation note. An attribute of the person replaces the diagnosis:
the state, the job or the party. 96 % of the texts name the party. For `party`, its words are
therefore removed from the texts of those people whose names the emulated remover misses, so that
the vectors must learn the party from other texts.

    python examples/congress.py congress.csv.gz OUT --attribute state

The file has the columns id, given, middle, family, state, job, party, text. OUT gets people/ (the
three input files of the study) and study/ (tables.md, study.html and the rest). Run the same
command again to resume.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import sys
from collections import Counter
from pathlib import Path

from clinveil.core.errors import ClinveilError
from clinveil.core.files import private_folder
from clinveil.core.keys import Key
from clinveil.core.load_settings import load_settings
from clinveil.corpus.corpus import memory_corpus
from clinveil.corpus.people import Patient, write_codes, write_patients
from clinveil.corpus.write import write_corpus
from clinveil.phi.treatment.partial_removal import EmulatedRemover
from clinveil.study.jmir_2020.settings import StudySettings
from clinveil.study.jmir_2020.study import run_study

TARGETS = 11  # as in the paper
STATES = """AK Alaska, AL Alabama, AR Arkansas, AZ Arizona, CA California, CO Colorado, CT Connecticut, DE Delaware,
FL Florida, GA Georgia, HI Hawaii, IA Iowa, ID Idaho, IL Illinois, IN Indiana, KS Kansas, KY Kentucky, LA Louisiana,
MA Massachusetts, MD Maryland, ME Maine, MI Michigan, MN Minnesota, MO Missouri, MS Mississippi, MT Montana,
NC North Carolina, ND North Dakota, NE Nebraska, NH New Hampshire, NJ New Jersey, NM New Mexico, NV Nevada,
NY New York, OH Ohio, OK Oklahoma, OR Oregon, PA Pennsylvania, RI Rhode Island, SC South Carolina, SD South Dakota,
TN Tennessee, TX Texas, UT Utah, VA Virginia, VT Vermont, WA Washington, WI Wisconsin, WV West Virginia, WY Wyoming,
DC District Columbia, PR Puerto Rico, GU Guam, PI Philippine Islands, AS American Samoa, VI Virgin Islands,
DK Dakota, OL Orleans, CZ Canal Zone, MP Mariana Islands"""
DESCRIPTIONS = dict(item.strip().split(" ", 1) for item in STATES.replace("\n", " ").split(","))
PARTY_WORDS = re.compile(
    r"\b(anti-?|pro-?)?(democrat|republican|whig|federalist|jacksonian|jackson|adams|opposition"
    r"|unionist|populist|"
    r"farmer-labor|free"
    r" soil|american|independent|progressive|silver|labor|administration|nullifier|socialist)"
    r"(s|ic|ism|ist)?\b(\s+(party|ticket))?",
    re.IGNORECASE,
)

Row = dict[str, str]


def read(path: Path) -> list[Row]:
    """Return the rows of the file, gzipped or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def patient(row: Row, attribute: str) -> Patient:
    """Return a person, with the attribute in place of a diagnosis."""
    name = " ".join(row[part] for part in ("given", "middle", "family")).split()
    return Patient(row["id"], tuple(name), (row[attribute],) if row[attribute] else ())


def header(row: Row) -> str:
    """Return `Name: first, middle, last;`, as in the paper's notes."""
    return f"Name: {', '.join(row[part] for part in ('given', 'middle', 'family') if row[part])};"


def write_people(
    rows: list[Row], attribute: str, settings: StudySettings, folder: Path
) -> list[str]:
    """Write notes.parquet, patients.parquet and codes.csv; return the most frequent values."""
    patients = {row["id"]: patient(row, attribute) for row in rows}
    hidden: set[str] = set()
    if attribute == "party":
        remover = EmulatedRemover(Key.from_seed(settings.seed), patients, settings.miss_rate)
        hidden = {missed.patient_id for missed in remover.missed}
    texts = [
        PARTY_WORDS.sub(" ", row["text"]) if row["id"] in hidden else row["text"] for row in rows
    ]
    notes = memory_corpus(
        [
            (row["id"], row["id"], f"{header(row)}\n{text}")
            for row, text in zip(rows, texts, strict=True)
        ]
    )
    write_corpus(
        notes.batches(), private_folder(folder) / "notes.parquet", notes.columns, ".parquet"
    )
    write_patients(patients.values(), folder / "patients.parquet")
    counts = Counter(row[attribute] for row in rows if row[attribute])
    write_codes({value: DESCRIPTIONS.get(value, value) for value in counts}, folder / "codes.csv")
    return [value for value, _ in counts.most_common(TARGETS)]


def main() -> int:
    """Run the study and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--attribute", choices=("state", "job", "party"), default="state")
    parser.add_argument("--config", type=Path, help="TOML file with settings of the study")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    # One short text per person: more passes than on notes, so that a name that occurs once is
    # trained.
    small = {"window": (1, 5, 9), "epochs": 10, "miss_rate": 0.1, "figure_3": False}
    given = {} if options.config else small
    try:
        settings = load_settings(
            StudySettings, {**given, "workers": options.workers}, options.config
        )
        people = private_folder(options.out) / "people"
        targets = write_people(read(options.file), options.attribute, settings, people)
        settings = settings.model_copy(update={"target": settings.target or tuple(targets)})
        files = [people / name for name in ("notes.parquet", "patients.parquet", "codes.csv")]
        results = run_study(
            *files, options.out / "study", settings, lambda line: print(line, file=sys.stderr)
        )
    except ClinveilError as error:
        print(f"congress: {error}", file=sys.stderr)
        return error.exit_code
    print("\n\n".join(table.markdown() for table in results.tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
