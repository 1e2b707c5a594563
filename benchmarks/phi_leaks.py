"""What `clinveil attack leaks` tells of names that the detectors miss, in notes that name nobody (MTSamples).

    python -P benchmarks/phi_leaks.py notes.csv [--notes 300] [--kind "in no list"]

Where a note says "the patient" before a verb, it gets a full name, the same throughout the note: of seven notes in ten
a usual one, of three one of the kind. The detectors run without a feed, with surrogates; what is left are the leaks.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from clinveil.attacks.attack import Context, attacks
from clinveil.core.keys import Key
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import Note, memory_corpus, rows
from clinveil.corpus.open import open_corpus
from clinveil.corpus.people import Patient
from clinveil.phi.deidentifier import Deidentifier
from clinveil.phi.passes import deidentify_corpus
from clinveil.phi.validation.canaries import _PERSON
from clinveil.phi.validation.invented import invented_name, name_pools
from clinveil.scale import serial


def named(notes: Iterable[Note], kind: str, rng: np.random.Generator) -> tuple[list[Note], dict[str, Patient]]:
    made, known = [], {}
    for note in notes:
        of = kind if rng.random() < 0.3 else "usual"
        name = tuple(invented_name(of, family=family, rng=rng) for family in (False, True))
        full = " ".join(name)
        text = _PERSON.sub(lambda match, full=full: f"{match[0]} {full}" if match["kin"] else full, note.text)
        if text != note.text:
            made.append(note._replace(text=text))
            known[note.patient_id] = Patient(note.patient_id, name)
    return made, known


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("file", type=Path)
    asked.add_argument("--notes", type=int, default=300)
    asked.add_argument("--kind", action="append", choices=list(name_pools()))
    how = asked.parse_args()
    source = list(islice(rows(open_corpus(how.file, NotesSettings())), how.notes))
    print("| names | attack | leaked | flagged | precision, chance | recall, chance | planted leaks found |")
    print("| --- | --- | ---: | ---: | --- | --- | ---: |")
    for kind in how.kind or ("in no list", "West African", "usual"):
        notes, known = named(source, kind, np.random.default_rng(1))
        done = deidentify_corpus(memory_corpus(notes), Deidentifier(Key.from_seed(1)), serial)
        made = memory_corpus([tuple(note) for batch in done for note in rows([batch.batch])])
        for name in ("pool-difference", "parrot"):
            found = attacks.get(name)()(Context(released=made, known=known), np.random.default_rng(1))
            cells = [
                "not measured" if f.value is None else f"{f.value:.3f} ({f.low:.3f} to {f.high:.3f}), {f.chance:.3f}"
                for f in found
            ]
            detail, control = found[0].detail, found[1].control
            planted = "-" if control is None else f"{control:.2f}"
            told = (kind, name, detail["leaked"], detail["flagged"], *cells, planted)
            print("|", " | ".join(map(str, told)), "|", flush=True)


if __name__ == "__main__":
    main()
