"""Invented notes of few words, synthetic releases of them, and models that do what none should."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from clinveil.cli import main
from clinveil.corpus import HeldOutPatients, memory_corpus, open_corpus
from clinveil.lm import END, PlainNotes, encode, read_notes, train_layout
from clinveil.releases import TrainHoldoutSplit, sides_of
from clinveil.releases.synthesis_model import Trained

COMMON = [
    f"{a}{b}"
    for a in ("fever", "pain", "cough", "rest", "heart")
    for b in ("a", "o", "y", "um", "al", "ine")
]
PATIENTS = 40


def rows_of(patients=PATIENTS, seed=0, each=2, sentences=4, words=COMMON):
    """(note_id, patient_id, text) of notes of random common words, and a word and a number of the
    patient's own.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(patients):
        for note in range(each):
            said = [
                " ".join(rng.choice(words, rng.integers(3, 9))).capitalize() + "."
                for _ in range(sentences)
            ]
            own = (
                f"Seen rare{chr(97 + patient % 26)}{chr(97 + patient // 26)} number"
                f" {70_000 + patient}."
            )
            rows.append((f"n{patient}-{note}", f"p{patient}", " ".join([*said, own])))
    return rows


def write_csv(path, rows):
    """The rows as CSV with the columns that we guess."""
    lines = [
        "note_id,patient_id,text",
        *(f'{note},{patient},"{text}"' for note, patient, text in rows),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def notes_of(rows):
    return read_notes(memory_corpus(rows))


FAST = [
    *("--set", "synthetic.count=25", "--set", "synthetic.longest=60"),
    *("--set", "phi=false", "--workers", "1", "--again"),
]
LSTM = [
    *(
        "--set",
        "lm.size=tiny",
        "--set",
        "lm.model=lstm",
        "--set",
        "lm.epochs=2",
        "--set",
        "lm.width=16",
    ),
    *("--set", "lm.lanes=8", "--set", "lm.window=10"),
]


def written(folder, out, *flags, notes="notes.csv"):
    """The exit code of a small synthetic release, of a reused model or of one that it trains."""
    training = [] if "--reuse" in flags else LSTM
    command = ["release", str(folder / notes), "-o", str(folder / out), "--as", "synthetic"]
    return main([*command, *FAST, *training, *flags])


def texts_in(path):
    """The notes of a file or folder that was written."""
    return [text for batch in open_corpus(path).batches() for text in batch["text"].to_pylist()]


class Copying:
    """Knows the training notes by heart and writes nothing else: the worst that a language model
    can do.
    """

    kind = "lstm-by-heart"

    def __init__(self, notes: PlainNotes, *, share=1e-9, vocabulary=None):
        self.vocabulary = vocabulary or train_layout(notes.texts, notes.patients, 1)
        encoded = encode(notes.texts, self.vocabulary)
        self.notes = [encoded.note(row).astype(np.int64) for row in range(len(encoded))]
        self._share = share

    def ready(self, *, double=False, threads=1):
        return nullcontext()

    def stream(self, lanes):
        return _Copies(self, lanes)

    def next_of(self, rows, place):
        """(size,) of the next token, given the notes that begin like this one."""
        size = self.vocabulary.size
        even = np.full(size, 1 / size)
        if not rows:
            return even
        counts = np.bincount([self.notes[row][place] for row in rows], minlength=size)
        return (1 - self._share) * counts / len(rows) + self._share * even

    def score(self, notes):
        found = []
        for note in notes:
            rows = list(range(len(self.notes)))
            logs = []
            for place, token in enumerate(note):
                logs.append(np.log(self.next_of(rows, place)[token]))
                rows = [row for row in rows if self.notes[row][place] == token]
                rows = [row for row in rows if len(self.notes[row]) > place + 1]
            found.append(np.array(logs))
        return found


class _Copies:
    def __init__(self, model, lanes):
        self._model = model
        self._lanes = lanes
        self.reset(np.arange(lanes))

    def reset(self, lanes, labels=None):
        if not hasattr(self, "_rows"):
            self._rows = [[] for _ in lanes]
            self._place = [0] * len(lanes)
        for lane in lanes:
            self._rows[lane] = list(range(len(self._model.notes)))
            self._place[lane] = 0

    def probabilities(self):
        return np.array(
            [self._model.next_of(*pair) for pair in zip(self._rows, self._place, strict=True)]
        )

    def push(self, ids):
        for lane, token in enumerate(ids):
            place = self._place[lane]
            notes = self._model.notes
            rows = [row for row in self._rows[lane] if notes[row][place] == token]
            self._rows[lane] = [row for row in rows if len(notes[row]) > place + 1]
            self._place[lane] += 1


class Always:
    """Writes one token for ever, or ends at once."""

    kind = "always"

    def __init__(self, notes: PlainNotes, token=END):
        self.vocabulary = train_layout(notes.texts, notes.patients, 5)
        if token != END:
            token = next(
                i
                for i, piece in enumerate(self.vocabulary.pieces)
                if piece[:1] == " " and piece[1:].isalpha()
            )
        self._row = np.zeros(self.vocabulary.size)
        self._row[token] = 1.0

    def score(self, notes):
        return [np.log(np.maximum(self._row[note], 1e-9)) for note in notes]

    def ready(self, *, double=False, threads=1):
        return nullcontext()

    def stream(self, lanes):
        return self._Stream(np.tile(self._row, (lanes, 1)))

    class _Stream:
        def __init__(self, rows):
            self._rows = rows

        def probabilities(self):
            return self._rows

        def push(self, ids):
            """Nothing changes."""

        def reset(self, lanes, labels=None):
            """Nothing changes."""


def split_in(notes, share, seed) -> TrainHoldoutSplit:
    """Hold out a random share of the patients."""
    patients = sorted({*notes.patients})
    order = np.random.default_rng(seed).permutation(patients).tolist()
    n = max(2, round(share * len(order)))
    return sides_of(notes, HeldOutPatients(frozenset(order[:n]), frozenset(order[n:])), seed)


def with_model(patch, make):
    """From here on the model of a run is `make(training notes)`, not a trained one."""

    def trained(job, notes, seed, *_):
        sides = sides_of(notes, job.held_out, seed)
        return Trained(
            make(sides.training), sides, seed, job.settings.seed is not None, before=False
        )

    patch.setattr("clinveil.releases.producers.synthetic._trained", trained)
