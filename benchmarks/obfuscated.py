"""Settings of the obfuscated release on one half of the patients: utility for a recipient, and
linkage.

Usage: python benchmarks/obfuscated.py NOTES --label COLUMN [--id COL] [--text COL] [--patient COL]
       [--half choose|confirm] [--model NAME ...] [--seed 1] [--keys 1] [--no-links] [--lines 0]
       [--vectors FOLDER] [--joined COLUMN] [--each]
       N/FLOOR/BACKGROUND[/STRENGTH[/LAYOUT]] | real/FLOOR | words/FLOOR ...

A setting such as 3-14/auto/0.6 names N, the patient floor (a number, or `auto`: that of a release
of these notes) and the share of background draws. A fourth part is the strength of the context:
with it the mechanism is `contextual`, without it `neighbours`. A fifth part is the layout.
`real/FLOOR` is not a release: the real words that reach the floor. `words/FLOOR`: as many words as
each note has, drawn at random from those that reach the floor in notes of its label.

Words are counted, and vectors and the language model trained, on the notes without the test
patients, as in a release; --vectors keeps the vectors for the next call. Identifiers are not
replaced first. Prints a Markdown table:
- macro-F1 trained on released and tested on the real notes of the test patients, the sequence task
  and the language model (bits), each with [floor, real];
- with --joined, for a column that the release does not read and that is joined by note id: macro-F1
  of the same classifier, and the share of real test notes whose most similar released note has the
  same value, each with [without the notes, real];
- notes linked, of 300, by a recipient, by a recipient with shadow vectors trained on other notes of
  the source, and by an attacker with the vault's vectors: by ten words in a row, and by the other
  notes of the patient, where there are any. --each also prints every matcher of the latter.

With several keys: means, and the range of the first figure.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from adversaries import Learned, context_of
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from clinveil.attacks import Context, Linkage, holding_of, target_of
from clinveil.channel import ChannelSettings
from clinveil.core import Key, NotesSettings, words
from clinveil.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus, MemoryCorpus, open_corpus
from clinveil.corpus import rows as rows_of
from clinveil.releases import Obfuscated, SplitRows, draw_held_out
from clinveil.utility import useful
from clinveil.vectors import VectorSettings, count_words, load_vectors, save_vectors, train

LINKED = {
    "note by ten words": "linked",
    "note by the patient's other notes": "by other notes",
}
HALVES = ("choose", "confirm")
SHARE = 0.15  # of the patients, to test on
TASKS = {
    "utility.transfer": "transfer",
    "utility.sequence": "sequence",
    "utility.language_model": "language model",
}


def half_of(corpus: Corpus, half: str | None, seed: int) -> MemoryCorpus:
    """Return the notes of one half of the patients, drawn by the seed; all notes without a half."""
    batches = list(corpus.batches())
    patients = sorted(
        {patient for batch in batches for patient in batch.column(PATIENT_ID).to_pylist()}
    )
    order = np.random.default_rng(seed).permutation(len(patients))
    chosen = order if half is None else order[HALVES.index(half) :: 2]
    wanted = pa.array([patients[i] for i in chosen.tolist()], pa.string())
    kept = [batch.filter(pc.is_in(batch.column(PATIENT_ID), value_set=wanted)) for batch in batches]
    return MemoryCorpus(
        tuple(batch for batch in kept if batch.num_rows), corpus.columns, corpus.suffix
    )


def released(
    corpus: Corpus, learned: Learned, setting: str, seed: int, scratch: Path, label: str
) -> Context:
    """Return the release of the notes with one setting under a public key, and its context."""
    kind, floor, *others = setting.split("/")
    least = Obfuscated().floor(learned.counts.n_patients) if floor == "auto" else int(floor)
    if kind in ("real", "words"):
        notes = without_channel(corpus, learned, least, seed, label, drawn=kind == "words")
        return Context(original=corpus, entered=corpus, released=notes, scratch=scratch, workers=1)
    background, *context = others
    how = ChannelSettings.model_validate(
        {
            "n": kind,
            "min_patients": least,
            "mechanism": "contextual" if context else "neighbours",
            "background": float(background),
            "context_strength": float(context[0]) if context else 0.0,
            "layout": context[1] if len(context) > 1 else "sentences",
            "allow_small": True,
        }
    )
    return context_of(corpus, learned, how, Key.from_seed(seed), scratch)


def without_channel(
    corpus: Corpus, learned: Learned, floor: int, seed: int, label: str, *, drawn: bool
) -> MemoryCorpus:
    """Return notes of words of at least `floor` patients: those of the note, or as many drawn from
    notes of the same label that a release would learn from.
    """
    counts = learned.counts
    shared = {
        word
        for word, patients in zip(counts.words, counts.patients.tolist(), strict=True)
        if patients >= floor
    }

    def kept(batch: pa.RecordBatch) -> Iterator[tuple[str, list[str]]]:
        labels = batch.column(label).to_pylist()
        for value, text in zip(labels, batch.column(TEXT).to_pylist(), strict=True):
            yield str(value), [word for word in words(text) if word in shared]

    pools = defaultdict[str, list[str]](list)
    for batch in learned.notes.batches():
        for value, forms in kept(batch):
            pools[value] += forms
    arrays = {value: np.array(forms, dtype=object) for value, forms in pools.items()}
    rng = np.random.default_rng(seed)
    batches = list[pa.RecordBatch]()
    for batch in corpus.batches():
        texts = [
            " ".join(rng.choice(arrays[value], len(forms)) if drawn else forms)
            for value, forms in kept(batch)
        ]
        place = batch.schema.get_field_index(TEXT)
        column = pa.array(texts, batch.schema.field(place).type)
        batches.append(batch.set_column(place, batch.schema.field(place), column))
    return MemoryCorpus(tuple(batches), corpus.columns)


def utility(context: Context, label: str, models: list[str]) -> dict[str, tuple[float, ...]]:
    """Return score, floor and ceiling of each task."""
    assert context.released is not None
    ids = [
        note for batch in context.released.batches() for note in batch.column(NOTE_ID).to_pylist()
    ]
    scores = dict[str, tuple[float, ...]]()
    for finding in useful(replace(context, notes={note: note for note in ids}), (label,), models):
        task = TASKS.get(finding.measure)
        if task == "sequence" and context.channel is None:
            scores["sequence lr"] = (float("nan"),) * 3
        elif task and finding.scores is not None:
            told = finding.scores
            scores[f"{task} {finding.labels[-1]}" if finding.labels else task] = tuple(
                float(value or 0.0) for value in (told.score, told.floor, told.ceiling)
            )
    return scores


@dataclass(frozen=True)
class Joined:
    """Values of a column that the release does not read, and the real notes that have one.

    Attributes:
        values: by note id. real: text by note id. tested: ids of the notes of the test patients.
        steering: value of the label that the release reads, by note id.
    """

    values: dict[str, str] = field(repr=False)
    real: dict[str, str] = field(repr=False)
    tested: list[str] = field(repr=False)
    steering: dict[str, str] = field(repr=False)

    @classmethod
    def of(cls, corpus: Corpus, column: str, label: str, test_patients: frozenset[str]) -> Joined:
        """Read the column; values of fewer than ten training notes are left out."""
        notes = dict[str, list[str]]()
        for batch in corpus.batches():
            ids, patients, texts, values, labels = (
                batch.column(name).to_pylist()
                for name in (NOTE_ID, PATIENT_ID, TEXT, column, label)
            )
            for note_id, *fields in zip(ids, patients, texts, values, labels, strict=True):
                notes[note_id] = [str(one or "") for one in fields]
        training = [
            value for patient, _, value, _ in notes.values() if patient not in test_patients
        ]
        wide = {value for value in set(training) if value and training.count(value) >= 10}
        used = {note_id: note for note_id, note in notes.items() if note[2] in wide}
        return cls(
            values={note_id: note[2] for note_id, note in used.items()},
            real={note_id: note[1] for note_id, note in used.items()},
            tested=[note_id for note_id, note in used.items() if note[0] in test_patients],
            steering={note_id: note[3] for note_id, note in used.items()},
        )

    def figures(self, context: Context) -> dict[str, tuple[float, ...]]:
        """Return classifier and retrieval with this release, without notes and with real notes."""
        assert context.released is not None
        texts = {note.note_id: note.text for note in rows_of(context.released)}
        labels = sorted(set(self.steering.values()))
        only_label = {
            note_id: f"label{labels.index(value)}" for note_id, value in self.steering.items()
        }
        scores = (
            self._scores(texts, self.real),
            (self._scores(only_label, only_label)[0], self._same_label()),
            self._scores(self.real, self.real),
        )
        names = ("joined macro-F1", "most similar note")
        return {name: tuple(score[place] for score in scores) for place, name in enumerate(names)}

    def _learned(self) -> list[str]:
        tested = set(self.tested)
        return [note_id for note_id in self.values if note_id not in tested]

    def _scores(self, learned: dict[str, str], tested: dict[str, str]) -> tuple[float, float]:
        """Return macro-F1 of a classifier, and the share of right most similar notes."""
        rows = self._learned()
        truth = np.array([self.values[note_id] for note_id in self.tested], dtype=object)
        known = np.array([self.values[note_id] for note_id in rows], dtype=object)
        features = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+")
        train_rows = features.fit_transform(learned[note_id] for note_id in rows)
        test_rows = features.transform(tested[note_id] for note_id in self.tested)
        classifier = LogisticRegression(C=10, max_iter=300, class_weight="balanced")
        guess = classifier.fit(train_rows, known.astype(str)).predict(test_rows)
        nearest = known[np.asarray((test_rows @ train_rows.T).todense()).argmax(axis=1)]
        score = f1_score(truth.astype(str), guess, average="macro", zero_division=0)
        return float(score), float(np.mean(nearest == truth))

    def _same_label(self) -> float:
        """Return the share of right notes if any note with the same label is named."""
        rows = self._learned()
        shares = list[float]()
        for note_id in self.tested:
            same = [
                self.values[other] == self.values[note_id]
                for other in rows
                if self.steering[other] == self.steering[note_id]
            ]
            shares.append(float(np.mean(same)) if same else 0.0)
        return float(np.mean(shares))


def linked(context: Context, *, each: bool) -> dict[str, tuple[float, ...]]:
    """Return the share of notes linked, by attacker."""
    shares = dict[str, tuple[float, ...]]()
    for finding in Linkage(own_vectors=True, each=each)(context, np.random.default_rng(1)):
        if finding.value is None:
            continue
        if finding.cell is not None and target_of(finding) in LINKED:
            shares[f"{LINKED[target_of(finding)]}, {holding_of(finding)}"] = (finding.value,)
        elif each and finding.measure == "attack.linkage" and "other notes" in str(finding.labels):
            shares[f"other notes, {finding.attack}"] = (finding.value,)
    return shares


def cell(draws: list[tuple[float, ...]]) -> str:
    """Return the mean of each figure over the keys, and the range of the first."""
    means = np.mean(draws, axis=0).tolist()
    first = [draw[0] for draw in draws]
    spread = f" ({min(first):.3f} to {max(first):.3f})" if len(draws) > 1 else ""
    return f"{means[0]:.3f}{spread}" + (
        f" [{means[1]:.3f}, {means[2]:.3f}]" if len(means) > 1 else ""
    )


def main() -> None:
    """Train vectors once, and measure every setting."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notes", type=Path)
    parser.add_argument("settings", nargs="+")
    for name in ("--id", "--text", "--patient"):
        parser.add_argument(name)
    parser.add_argument("--label", required=True)
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--model", action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--keys", type=int, default=1)
    parser.add_argument("--joined")
    parser.add_argument("--no-links", action="store_true")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--lines", type=int, default=0)
    told = parser.parse_args()
    roles = NotesSettings(id=told.id, text=told.text, patient=told.patient)
    keep = (told.joined,) if told.joined else ()
    every = open_corpus(told.notes, roles, label=(told.label,), keep=keep)
    corpus = half_of(every, told.half, told.seed)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        rows = [SplitRows.of(batch, told.label) for batch in corpus.batches()]
        held_out = draw_held_out(rows, SHARE, str(told.seed).encode())
        learned_from = held_out.without(corpus)
        counts = count_words(learned_from, scratch)
        if told.vectors is None or not told.vectors.exists():
            trained = train(
                learned_from,
                VectorSettings(),
                seed=told.seed,
                workers=1,
                scratch=scratch / "t",
                counts=counts,
            )
            save_vectors(trained, told.vectors or scratch / "v")
        vectors = load_vectors(told.vectors or scratch / "v")
        learned = Learned(learned_from, counts, vectors)
        auto = Obfuscated().floor(counts.n_patients)
        print(f"{counts.n_patients:,} patients, {counts.n_tokens:,} words; auto is {auto}\n")
        joined = None
        if told.joined:
            joined = Joined.of(corpus, told.joined, told.label, held_out.patients)
            print(
                f"{len(joined.values):,} notes with {told.joined}, {len(joined.tested):,} tested\n"
            )
        heads = list[str]()
        for setting in told.settings:
            draws = defaultdict[str, list[tuple[float, ...]]](list)
            for key in range(told.keys):
                context = replace(
                    released(corpus, learned, setting, key + 5, scratch, told.label),
                    test_patients=held_out.patients,
                    unread=True,
                )
                figures = utility(context, told.label, told.model or ["tfidf-lr"])
                figures |= joined.figures(context) if joined else {}
                if not told.no_links and context.channel is not None:
                    figures |= linked(context, each=told.each)
                for name_of, values in figures.items():
                    draws[name_of].append(values)
            if list(draws) != heads:
                heads = list(draws)
                print(f"| setting | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 1)}")
            cells = (cell(values) for values in draws.values())
            print(f"| {setting} | {' | '.join(cells)} |", flush=True)
            if told.lines:
                assert context.released is not None
                first = islice(rows_of(context.released), told.lines)
                print("\n".join(f"    {note.text[:200]}" for note in first), flush=True)


if __name__ == "__main__":
    main()
