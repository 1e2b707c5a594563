"""Paper B on public biographies of members of the United States Congress.

The biographies are public, so attacking real names does no harm. A header line with the full name
precedes each text, as on a consultation note. An attribute of the person replaces the diagnosis:
the state, the job or the party. 96 % of the texts name the party. For `party`, its words are
therefore removed from the texts of those people whose names the emulated remover misses, so that
the vectors must learn the party from other texts.

    python -m papers.jmir_2020.congress congress.csv.gz -o OUT --attribute state

The file has the columns id, given, middle, family, state, job, party, text. OUT gets people/ (the
three input files of the paper's script) and its results.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
from collections import Counter
from pathlib import Path

from clinveil import Key, Patient
from clinveil.core import private_folder
from clinveil.corpus import memory_corpus, write_codes, write_corpus, write_patients
from papers.jmir_2020.removal import EmulatedRemover
from papers.jmir_2020.run import HERE, run
from papers.jmir_2020.settings import GridSettings
from papers.running import command_line, exit_code_of, settings_of

TARGETS = 11  # as in the paper
STATES = """
AK Alaska, AL Alabama, AR Arkansas, AZ Arizona, CA California, CO Colorado, CT Connecticut,
DE Delaware, FL Florida, GA Georgia, HI Hawaii, IA Iowa, ID Idaho, IL Illinois, IN Indiana,
KS Kansas, KY Kentucky, LA Louisiana, MA Massachusetts, MD Maryland, ME Maine, MI Michigan,
MN Minnesota, MO Missouri, MS Mississippi, MT Montana, NC North Carolina, ND North Dakota,
NE Nebraska, NH New Hampshire, NJ New Jersey, NM New Mexico, NV Nevada, NY New York, OH Ohio,
OK Oklahoma, OR Oregon, PA Pennsylvania, RI Rhode Island, SC South Carolina, SD South Dakota,
TN Tennessee, TX Texas, UT Utah, VA Virginia, VT Vermont, WA Washington, WI Wisconsin,
WV West Virginia, WY Wyoming, DC District Columbia, PR Puerto Rico, GU Guam,
PI Philippine Islands, AS American Samoa, VI Virgin Islands, DK Dakota, OL Orleans,
CZ Canal Zone, MP Mariana Islands
"""
DESCRIPTIONS = dict(item.split(None, 1) for item in STATES.replace("\n", " ").split(","))
PARTY_WORDS = re.compile(
    r"\b(anti-?|pro-?)?(democrat|republican|whig|federalist|jacksonian|jackson|adams|opposition"
    r"|unionist|populist|farmer-labor|free soil|american|independent|progressive|silver|labor"
    r"|administration|nullifier|socialist)(s|ic|ism|ist)?\b(\s+(party|ticket))?",
    re.IGNORECASE,
)

PersonRow = dict[str, str]


def read(path: Path) -> list[PersonRow]:
    """Return the rows of the file, gzipped or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def patient(row: PersonRow, attribute: str) -> Patient:
    """Return a person, with the attribute in place of a diagnosis."""
    name = " ".join(row[part] for part in ("given", "middle", "family")).split()
    return Patient(row["id"], tuple(name), (row[attribute],) if row[attribute] else ())


def header(row: PersonRow) -> str:
    """Return `Name: first, middle, last;`, as in the paper's notes."""
    return f"Name: {', '.join(row[part] for part in ('given', 'middle', 'family') if row[part])};"


def write_people(
    rows: list[PersonRow], attribute: str, settings: GridSettings, folder: Path
) -> list[str]:
    """Write notes.parquet, patients.parquet and codes.csv; return the most frequent values."""
    patients = {row["id"]: patient(row, attribute) for row in rows}
    hidden: set[str] = set()
    if attribute == "party":
        remover = EmulatedRemover(Key.from_seed(settings.seed), patients, settings.miss_rate)
        hidden = {missed.patient_id for missed in remover.missed}
    triples = []
    for row in rows:
        text = PARTY_WORDS.sub(" ", row["text"]) if row["id"] in hidden else row["text"]
        triples.append((row["id"], row["id"], f"{header(row)}\n{text}"))
    notes = memory_corpus(triples)
    write_corpus(
        notes.batches(), private_folder(folder) / "notes.parquet", notes.columns, ".parquet"
    )
    write_patients(patients.values(), folder / "patients.parquet")
    counts = Counter(row[attribute] for row in rows if row[attribute])
    write_codes({value: DESCRIPTIONS.get(value, value) for value in counts}, folder / "codes.csv")
    return [value for value, _ in counts.most_common(TARGETS)]


def main() -> None:
    """Run the paper's script on the biographies."""
    parser = command_line(str(__doc__).splitlines()[0], HERE / "settings.toml")
    parser.add_argument("--attribute", choices=("state", "job", "party"), default="state")
    arguments = parser.parse_args()
    settings = settings_of(GridSettings, arguments)
    people = private_folder(arguments.out) / "people"
    targets = write_people(read(arguments.notes), arguments.attribute, settings, people)
    settings = settings.model_copy(update={"target": settings.target or tuple(targets)})
    run(
        people / "notes.parquet",
        people / "patients.parquet",
        people / "codes.csv",
        arguments.out / "results",
        settings,
    )


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
