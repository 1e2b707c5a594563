"""A small corpus of invented notes that a release of any kind can be made from in seconds."""

from __future__ import annotations

import shlex

import numpy as np

from clinveil.cli import main
from clinveil.corpus import Patient, write_patients
from no_limits import NO_LIMITS

KINDS = ("obfuscated", "deidentified", "synthetic")
STEMS = (
    *(
        "fever",
        "pain",
        "cough",
        "rest",
        "heart",
        "lung",
        "renal",
        "sleep",
        "ankle",
        "skin",
        "liver",
    ),
    *(
        "bowel",
        "joint",
        "elbow",
        "tremor",
        "nerve",
        "throat",
        "tongue",
        "spleen",
        "kidney",
        "tooth",
    ),
)
WORDS = [
    f"{stem}{end}"
    for stem in STEMS
    for end in ("", "a", "o", "y", "um", "al", "ine", "ish", "less", "ward")
]
PATIENTS = 60
FIRST = ("Qamira", "Wexlor", "Zopheny", "Yldana")
LAST = ("Brixtow", "Crundle", "Dwexham", "Fjolnir", "Gwentor")
FAST = shlex.split(
    "--set vectors.dim=12 --set vectors.epochs=2 --set vectors.window=5"
    f" --limits {shlex.quote(str(NO_LIMITS))}"
)
OWN = {
    "obfuscated": FAST,
    "deidentified": [],
    "synthetic": ["--set", "lm.model=unigram", "--set", "synthetic.count=60"],
}


def name_of(patient):
    return FIRST[patient % 4], LAST[patient % 5]


def write_notes(folder):
    """`notes.csv` and `patients.parquet`: two notes a patient, with a name and a word of the
    patient's own.
    """
    rng = np.random.default_rng(4)
    lines = ["note_id,patient_id,text,kind"]
    for patient in range(PATIENTS):
        topic = patient % 2
        for note in range(2):
            half = len(WORDS) // 2
            pool = WORDS[topic * half : (topic + 1) * half] * 3 + WORDS
            said = [
                " ".join(rng.choice(pool, rng.integers(5, 11))).capitalize() + "." for _ in range(6)
            ]
            said.insert(1, f"Patient name: {' '.join(name_of(patient))}.")
            said.append(f"Seen with rareword{chr(97 + patient % 26)}{chr(97 + patient // 26)}.")
            lines.append(f'n{patient}-{note},p{patient},"{" ".join(said)}",{"ab"[topic]}')
    (folder / "notes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    people = [Patient(f"p{patient}", name_of(patient)) for patient in range(PATIENTS)]
    write_patients(people, folder / "patients.parquet")
    return folder


def arguments(folder, out, kind, *more):
    """The command line of a release of that kind."""
    shared = shlex.split(f"--patients {folder / 'patients.parquet'} --workers 1 --quiet --again")
    shared += ["--set", "identifiers.language=any"]  # invented words
    command = ["release", str(folder / "notes.csv"), "-o", str(folder / out), "--as", kind]
    return [*command, *shared, "--label", "kind", *OWN[kind], *more]


def released(folder, out, kind, *more):
    """Its exit code."""
    return main(arguments(folder, out, kind, *more))
