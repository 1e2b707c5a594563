"""Settings of the obfuscated release on one half of the patients: utility for a recipient, and
linkage.

Usage: python benchmarks/obfuscated.py NOTES --label COLUMN [--id COL] [--text COL] [--patient COL]
       [--half choose|confirm] [--model NAME ...] [--seed 1] [--keys 1] [--no-links] [--lines 0]
       [--vectors FOLDER]
       N/FLOOR/BACKGROUND[/STRENGTH] ...

A setting such as 3-14/auto/0.6 names N, the patient floor (a number, or `auto`: that of a release
of these notes) and the share of background draws. A fourth part is the strength of the context:
with it the mechanism is `contextual`, without it `neighbours`. Words are counted, and vectors and
the language model trained, on the half without its test patients, as in a release; --vectors keeps
the vectors for the next call. Identifiers are not replaced first. Prints a Markdown
table: macro-F1 trained on released and tested on the real notes of the test patients, the sequence
task and the language model (bits), each with [floor, real]; notes linked by ten words in a row, of
300, by a recipient, by a recipient with shadow vectors trained on other notes of the source, and by
an attacker with the vault's vectors. With several keys: means and ranges.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from adversaries import Learned, context_of

from clinveil.attacks import Context, Linkage, holding_of, target_of
from clinveil.channel import ChannelSettings
from clinveil.core import Key, NotesSettings
from clinveil.corpus import NOTE_ID, PATIENT_ID, Corpus, MemoryCorpus, open_corpus
from clinveil.corpus import rows as rows_of
from clinveil.releases import Obfuscated, SplitRows, draw_held_out
from clinveil.utility import useful
from clinveil.vectors import VectorSettings, count_words, load_vectors, save_vectors, train

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


def released(corpus: Corpus, learned: Learned, setting: str, seed: int, scratch: Path) -> Context:
    """Obfuscate the notes with one setting under a public key."""
    n, floor, background, *strength = setting.split("/")
    counts = learned.counts
    least = Obfuscated().floor(counts.n_patients) if floor == "auto" else int(floor)
    how = ChannelSettings(
        n=n,
        min_patients=least,
        mechanism="contextual" if strength else "neighbours",
        background=float(background),
        context_strength=float(strength[0]) if strength else 0.0,
        layout="sentences",
        allow_small=True,
    )
    return context_of(corpus, learned, how, Key.from_seed(seed), scratch)


def utility(context: Context, label: str, models: list[str]) -> dict[str, tuple[float, ...]]:
    """Return score, floor and ceiling of each task."""
    assert context.released is not None
    ids = [
        note for batch in context.released.batches() for note in batch.column(NOTE_ID).to_pylist()
    ]
    scores = dict[str, tuple[float, ...]]()
    for finding in useful(replace(context, notes={note: note for note in ids}), (label,), models):
        task = TASKS.get(finding.measure)
        if task and finding.scores is not None:
            told = finding.scores
            scores[f"{task} {finding.labels[-1]}" if finding.labels else task] = tuple(
                float(value or 0.0) for value in (told.score, told.floor, told.ceiling)
            )
    return scores


def linked(context: Context) -> dict[str, tuple[float, ...]]:
    """Return the share of notes linked by ten words, by attacker."""
    findings = Linkage(own_vectors=True)(context, np.random.default_rng(1))
    return {
        f"linked, {holding_of(finding)}": (finding.value,)
        for finding in findings
        if target_of(finding) == "note by ten words" and finding.value is not None
    }


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
    parser.add_argument("--no-links", action="store_true")
    parser.add_argument("--lines", type=int, default=0)
    told = parser.parse_args()
    roles = NotesSettings(id=told.id, text=told.text, patient=told.patient)
    corpus = half_of(open_corpus(told.notes, roles, label=(told.label,)), told.half, told.seed)
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
                workers=2,
                scratch=scratch / "t",
                counts=counts,
            )
            save_vectors(trained, told.vectors or scratch / "v")
        vectors = load_vectors(told.vectors or scratch / "v")
        learned = Learned(learned_from, counts, vectors)
        auto = Obfuscated().floor(counts.n_patients)
        print(f"{counts.n_patients:,} patients, {counts.n_tokens:,} words; auto is {auto}\n")
        heads = list[str]()
        for setting in told.settings:
            draws = defaultdict[str, list[tuple[float, ...]]](list)
            for key in range(told.keys):
                context = replace(
                    released(corpus, learned, setting, key + 5, scratch),
                    test_patients=held_out.patients,
                    unread=True,
                )
                figures = utility(context, told.label, told.model or ["tfidf-lr"])
                figures |= {} if told.no_links else linked(context)
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
