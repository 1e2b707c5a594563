"""Describe a set of notes in one pass: counts only, no words of notes, nothing written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from clinveil.core import NO_NUMBERS, Finding, Numbers, is_markup, visible_text, words
from clinveil.corpus.corpus import PATIENT_ID, Columns, Corpus, rows
from clinveil.corpus.notes_corpus import OpenedCorpus
from clinveil.corpus.uniqueness import Hashes, hashes, n_distinct
from clinveil.lexicons import is_english

RARE_BELOW = 5  # the default of a release


@dataclass(frozen=True)
class Inspection:
    """Counts and column names of a set of notes.

    Attributes:
        rows: notes read. skipped: rows that the source's preset leaves out, by reason.
        patients: distinct patients; without a patient column, the number of notes.
        null, empty, wordless: notes with a null text, an empty text, and a text without words.
        marked_up: notes in HTML or XML, or with character references. not_english: notes in another
            language.
        words: running words. types: distinct ones (lookup forms). rare_types: those of fewer than 5
            patients.
        exact_duplicates: notes with the same text as an earlier note (empty ones excluded).
        columns: the roles. guessed: roles with a guessed column. preset: the known source, or None.
    """

    rows: int
    skipped: Mapping[str, int]
    patients: int
    null: int
    empty: int
    wordless: int
    marked_up: int
    not_english: int
    words: int
    types: int
    rare_types: int
    exact_duplicates: int
    columns: Columns
    guessed: tuple[str, ...]
    preset: str | None

    def findings(self) -> list[Finding]:
        """Return the counts as findings of the group `corpus`, with column names in their
        labels.
        """
        columns = self.columns

        def count(
            name: str,
            value: float,
            n: int,
            unit: str = "notes",
            labels: tuple[str, ...] = (),
            numbers: Numbers = NO_NUMBERS,
        ) -> Finding:
            return Finding(
                f"corpus.{name}",
                value,
                n,
                source="docs: inspect",
                labels=labels,
                numbers=numbers,
                unit=unit,
            )

        roles = {
            "text": columns.text,
            "id": columns.note_id,
            "patient": columns.patient_id,
            "preset": self.preset,
            "guessed": ", ".join(self.guessed),
            "kept": ", ".join(columns.keep),
            "dropped": ", ".join(columns.dropped),
        }
        used = tuple(f"{role}: {names}" for role, names in roles.items() if names)
        return [
            count("rows", self.rows, self.rows, labels=used),
            *(
                count("skipped", n, self.rows + n, labels=(reason,))
                for reason, n in self.skipped.items()
            ),
            count("patients", self.patients, self.rows),
            *(
                count(k, getattr(self, k), self.rows)
                for k in ("null", "empty", "wordless", "marked_up", "not_english")
            ),
            count("words", self.words, self.words, unit="words"),
            count("types", self.types, self.words, unit="words"),
            count(
                "rare_types",
                self.rare_types,
                self.types,
                unit="types",
                numbers={"fewer_patients_than": RARE_BELOW},
            ),
            count("exact_duplicates", self.exact_duplicates, self.rows),
        ]


_ENOUGH = (
    0,
) * RARE_BELOW  # of every word that is not rare, so that memory depends on the vocabulary only


@dataclass
class _Tally:
    """The counters of one pass; `users`: words and the first few patients who use them."""

    users: dict[str, tuple[int, ...]] = field(default_factory=dict)
    patients: list[Hashes] = field(default_factory=list)
    texts: list[Hashes] = field(default_factory=list)
    rows: int = 0
    null: int = 0
    empty: int = 0
    wordless: int = 0
    marked_up: int = 0
    not_english: int = 0
    words: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        notes = list(rows([batch]))
        self.rows += batch.num_rows
        self.null += batch.num_rows - len(notes)
        self.patients.append(hashes(batch.column(PATIENT_ID).to_pylist()))
        texts = [note.text for note in notes if note.text]
        self.empty += len(notes) - len(texts)
        self.texts.append(hashes(texts))
        for note in notes:
            sequence = words(note.text)
            patient = hash(note.patient_id)
            self.words += len(sequence)
            self.wordless += not sequence
            self.marked_up += is_markup(note.text)
            self.not_english += not is_english(visible_text(note.text))
            for word in set(sequence):
                known = self.users.get(word, ())
                if len(known) < RARE_BELOW and patient not in known:
                    self.users[word] = (
                        _ENOUGH if len(known) + 1 == RARE_BELOW else (*known, patient)
                    )


def inspect(corpus: Corpus) -> Inspection:
    """Read all notes once and count. Raises InputError like the corpus."""
    tally = _Tally()
    for batch in corpus.batches():
        tally.add(batch)
    types = len(tally.users)
    rare = sum(len(known) < RARE_BELOW for known in tally.users.values())
    opened = corpus if isinstance(corpus, OpenedCorpus) else None
    return Inspection(
        rows=tally.rows,
        skipped=dict(corpus.skipped),
        patients=n_distinct(tally.patients),
        null=tally.null,
        empty=tally.empty,
        wordless=tally.wordless - tally.empty,
        marked_up=tally.marked_up,
        not_english=tally.not_english,
        words=tally.words,
        types=types,
        rare_types=rare,
        exact_duplicates=tally.rows - tally.null - tally.empty - n_distinct(tally.texts),
        columns=corpus.columns,
        guessed=opened.guessed if opened else (),
        preset=opened.preset if opened else None,
    )
