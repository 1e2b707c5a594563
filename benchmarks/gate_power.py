"""Power of the gates of `release`, and their rate of false refusals.

    python benchmarks/gate_power.py [--seeds 100] [--parts verbatim,honest,names]


Notes are those of the demo corpus, one a patient, below a floor of 5 patients; a tenth of the
patients is held out.

verbatim: notes of other patients of the same grammar, and among them k patients' notes copied
whole; or with one word in 20 changed; with a paragraph of 60 words in all notes, or in a fifth of
them.
honest: unigrams and small LSTMs trained on each seed's own patients, who write as many tokens;
nothing is copied.
names: the own-name gate of `release`: names leaked in clear, and releases in which names come by
chance only.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, partial

import numpy as np

from clinveil.attacks import FullNameIndex, own_names, written
from clinveil.corpus import HeldOutPatients, many_notes, memory_corpus
from clinveil.lexicons import all_given_names, surnames
from clinveil.lm import (
    ModelSettings,
    PlainNotes,
    SamplingConfig,
    encode,
    make_vocabulary,
    read_notes,
    train_layout,
    train_model,
)
from clinveil.releases import (
    Examined,
    TrainHoldoutSplit,
    examine,
    patient_gates,
    shared_text,
    sides_of,
)
from clinveil.stats import clopper_pearson

SPAN = 50
FLOOR = 5
GATES = ("no long copies", "no note copied whole", "no near copies")
STOCK = " ".join(f"clause{a}{b}" for a in "bdfgklmprs" for b in "aeiouy")
LSTM = {
    "model": "lstm",
    "size": "tiny",
    "vocabulary": "words",
    "width": 32,
    "epochs": 3,
    "lanes": 8,
    "window": 35,
}


@cache
def plain(seed: int, patients: int) -> PlainNotes:
    """The first notes of invented patients."""
    pairs = many_notes(seed, 0, patients)
    return read_notes(
        memory_corpus([(notes[0].note_id, who.patient_id, notes[0].text) for who, notes in pairs])
    )


def demo(seed: int, patients: int, stock: float = 0.0) -> PlainNotes:
    """The same; a share of the patients has the paragraph too."""
    notes = plain(seed, patients)
    texts = (
        f"{text}\n{STOCK}" if i < stock * patients else text for i, text in enumerate(notes.texts)
    )
    return PlainNotes(tuple(texts), notes.note_ids, notes.patients)


def split_patients(notes: PlainNotes, seed: int) -> TrainHoldoutSplit:
    """A tenth of the patients, at least two, held out."""
    patients = np.random.default_rng(seed).permutation(sorted(set(notes.patients))).tolist()
    n_held_out = max(2, round(0.1 * len(patients)))
    held_out = HeldOutPatients(frozenset(patients[:n_held_out]), frozenset(patients[n_held_out:]))
    return sides_of(notes, held_out)


def gates_of(texts: Sequence[str], sides: TrainHoldoutSplit, seed: int) -> Examined:
    """The gates of so many texts, written below the floor."""
    vocabulary = train_layout(sides.training.texts, sides.training.patients, FLOOR)
    names = tuple(map(str, range(len(texts))))
    notes = shared_text(PlainNotes(tuple(texts), names, names), vocabulary)
    return examine(
        notes, len(texts), sides, vocabulary, np.random.default_rng(seed), span=SPAN, feed=None
    )


def refused(found: Examined) -> list[bool]:
    """Whether each copy gate refuses, and whether any does."""
    each = [not gate.passed for name in GATES for gate in found.gates if gate.name == name]
    return [*each, any(each)]


@dataclass(frozen=True)
class Case:
    """One construction. `change` makes a copied note of one of training."""

    name: str
    stock: float
    change: Callable[[str], str]


def changed(every: int, text: str) -> str:
    """The note with every so many words another."""
    words = iter(range(10**9))
    lines = text.split("\n")
    return "\n".join(
        " ".join("and" if next(words) % every == every - 1 else w for w in line.split())
        for line in lines
    )


def tenth(text: str) -> str:
    """A tenth of the sentences, at least one, in a row after the first quarter, with other text
    around.
    """
    sentences = text.split(". ")
    start = len(sentences) // 4
    length = max(1, round(len(sentences) / 10))
    return f"{STOCK}\n{'. '.join(sentences[start : start + length])}.\n{STOCK}"


CASES = (
    Case("verbatim", 0.0, str),
    Case("verbatim, paragraph in all notes", 1.0, str),
    Case("verbatim, paragraph in a fifth", 0.2, str),
    Case("verbatim, other text around", 0.0, lambda text: f"{STOCK}\n{text}\n{STOCK}"),
    Case("1 word in 20 changed", 0.0, partial(changed, 20)),
    Case("1 word in 8 changed", 0.0, partial(changed, 8)),
    Case("a tenth of the sentences", 0.0, tenth),
)


def verbatim(seeds: int) -> Iterator[str]:
    """Share of releases refused, by construction. A twentieth of the seeds will do: only the notes
    are drawn.
    """
    heads = ("construction", "patients", "copied whole", *GATES, "any")
    yield from _table(heads)
    for patients in (50, 200, 1_000):
        for case in CASES:
            shares = [0, 1, 5, round(0.3 * patients)]
            hits = {copied: [] for copied in shares}
            for seed in range(max(1, seeds // 20)):
                sides = split_patients(demo(seed, patients, case.stock), seed)
                others = demo(10_000 + seed, patients, case.stock).texts
                for copied in shares:
                    who = set(sorted(set(sides.training.patients))[:copied])
                    mine = zip(sides.training.patients, sides.training.texts, strict=True)
                    copies = [case.change(text) for patient, text in mine if patient in who]
                    hits[copied].append(
                        refused(gates_of([*others[len(copies) :], *copies], sides, seed))
                    )
            for copied, rows in hits.items():
                yield _row(
                    case.name,
                    patients,
                    copied,
                    *(_share(column) for column in zip(*rows, strict=True)),
                )


def honest(seeds: int) -> Iterator[str]:
    """False refusals: of each seed another corpus, split and training."""
    yield from _table(("generator", "seeds", *GATES, "any", "longest run, words (median, most)"))
    for name, settings in (("unigram", {"model": "unigram"}), ("LSTM 32 wide, 3 epochs", LSTM)):
        rows = []
        longest = []
        for seed in range(seeds):
            sides = split_patients(demo(seed, 40), seed)
            found = gates_of(
                _texts(sides.training, ModelSettings.model_validate(settings), seed), sides, seed
            )
            rows.append(refused(found))
            longest.append(
                next(f.value for f in found.findings if f.measure == "attack.copies_longest")
            )
        shares = (_share(column) for column in zip(*rows, strict=True))
        yield _row(name, seeds, *shares, f"{np.median(longest):.0f}, {max(longest):.0f}")


def _texts(training: PlainNotes, settings: ModelSettings, seed: int) -> list[str]:
    """As many tokens as were trained on."""
    vocabulary = make_vocabulary(training, settings)
    encoded = encode(training.texts, vocabulary)
    model, _ = train_model(
        encoded, vocabulary, settings, seed=seed, threads=1, say=lambda line: None
    )
    notes = written(model, encoded.ids.size, seed, SamplingConfig(64, 600))
    return [model.vocabulary.decode(notes.note(row).tolist()) for row in range(len(notes))]


def names(seeds: int) -> Iterator[str]:
    """The own-name gate: refused by leaks in clear, and where names come by chance."""
    yield from _table(("patients", "leaked", "other names in the notes", "refused"))
    for patients in (1, 5, 10, 50, 100, 200, 1_000):
        for leaked, others in ((0, 0.0), (0, 0.2), (1, 0.0), (1, 0.2), (2, 0.2), (4, 0.2)):
            if leaked <= patients:
                rows = [_leaks(patients, leaked, others, seed) for seed in range(seeds)]
                yield _row(patients, leaked, f"{others:.0%} of patients", _share(rows))


def _leaks(patients: int, leaked: int, others: float, seed: int) -> bool:
    """Whether a release is refused: some own names in it, and anybody's names at random, the own
    ones too.
    """
    rng = np.random.default_rng([seed, patients, leaked])
    pools = [sorted(pool) for pool in (all_given_names(), surnames())]
    people = [tuple(pool[rng.integers(len(pool))] for pool in pools) for _ in range(patients)]
    index = FullNameIndex(people, rng, replicates=1)
    texts = [["seen", "today"] for _ in range(patients)]
    for i in range(patients):
        said = [i] if i < leaked else []
        said += [int(rng.integers(patients))] if rng.random() < others else []
        for row in said:
            texts[i] += [*(word.lower() for part in people[row] for word in part.split()), "and"]
    rows = np.arange(patients)
    finding = own_names(index, rows, [index.search(rows, texts)], rng)
    return any(not gate.passed for gate in patient_gates([finding]))


def _share(hits: Sequence[bool]) -> str:
    low, high = clopper_pearson(sum(hits), len(hits))
    return f"{sum(hits) / len(hits):.2f} ({low:.2f} to {high:.2f})"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _table(heads: Sequence[str]) -> Iterator[str]:
    yield _row(*heads)
    yield _row(*["---"] * len(heads))


PARTS = {"verbatim": verbatim, "honest": honest, "names": names}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--parts", default=",".join(PARTS))
    asked = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} before the"
        f" run, {date.today()}\n"
    )
    for part in asked.parts.split(","):
        used = time.process_time()
        for line in PARTS[part](asked.seeds):
            print(line, flush=True)
        print(f"\n{part}: {time.process_time() - used:.0f} s of processor time\n")


if __name__ == "__main__":
    main()
