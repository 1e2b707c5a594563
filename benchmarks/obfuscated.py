"""Settings of the obfuscated release on one half of the patients: utility for a recipient, and
linkage.

Usage: python benchmarks/obfuscated.py NOTES --label COLUMN [--id COL] [--text COL] [--patient COL]
       [--half choose|confirm] [--model NAME ...] [--seed 1] N/FLOOR/BACKGROUND ...

A setting such as 3-14/auto/0.6 names N, the patient floor (a number, or `auto`: that of a release
of these notes) and the share of background draws. Words are counted and vectors trained on the half
without its test patients, as in a release. Identifiers are not replaced first. Prints a Markdown
table: macro-F1 trained on released and tested on the real notes of the test patients, as a share of
macro-F1 trained on real notes; the sequence task and the language model; notes linked by ten words
in a row, of 300, by a recipient, by a recipient with shadow vectors trained on other notes of the
source, and by an attacker with the vault's vectors.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from adversaries import context_of

from clinveil.attacks import Context, Linkage
from clinveil.channel import ChannelSettings
from clinveil.core import Key, NotesSettings
from clinveil.corpus import NOTE_ID, PATIENT_ID, Corpus, MemoryCorpus, open_corpus
from clinveil.releases import Obfuscated, SplitRows, draw_held_out
from clinveil.utility import useful
from clinveil.vectors import Vectors, VectorSettings, WordCounts, count_words, train

HALVES = ("choose", "confirm")
SHARE = 0.15  # of the patients, to test on
HEAD = (
    "setting",
    "words that come out",
    "transfer",
    "sequence",
    "language model, bits",
    "recipient",
    "shadow",
    "stolen",
)


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
    corpus: Corpus, counts: WordCounts, vectors: Vectors, setting: str, scratch: Path
) -> Context:
    """Obfuscate the notes with one setting under a public key."""
    n, floor, background = setting.split("/")
    least = Obfuscated().floor(counts.n_patients) if floor == "auto" else int(floor)
    how = ChannelSettings.model_validate(
        {"n": n, "min_patients": least, "background": float(background), "allow_small": True}
    )
    return context_of(corpus, counts, vectors, how, Key.from_seed(5), scratch)


def row(context: Context, setting: str, label: str, models: list[str]) -> Iterator[str]:
    """Yield the cells of one setting."""
    assert context.channel is not None and context.released is not None
    yield setting
    yield f"{int(context.channel.written.sum()):,}"
    ids = [
        note for batch in context.released.batches() for note in batch.column(NOTE_ID).to_pylist()
    ]
    found = useful(replace(context, notes={note: note for note in ids}), (label,), models)
    transfer = [f.detail for f in found if f.measure == "utility.transfer"]
    yield "; ".join(
        f"{d['model']} {d['of_ceiling']:.3f} ({d['score']:.3f} of {d['ceiling']:.3f})"
        for d in transfer
    )
    for measure in ("utility.sequence", "utility.language_model"):
        d = next(f.detail for f in found if f.measure == measure)
        yield f"{d['score']:.2f} (floor {d['floor']:.2f}, real {d['ceiling']:.2f})"
    links = Linkage(own_vectors=True)(context, np.random.default_rng(1))
    ten = {
        f.detail["adversary"]: f.value
        for f in links
        if f.detail.get("target") == "note by ten words"
    }
    yield from (f"{ten[who]:.3f}" for who in ("recipient", "shadow", "stolen-vectors"))


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
    told = parser.parse_args()
    roles = NotesSettings(id=told.id, text=told.text, patient=told.patient)
    corpus = half_of(open_corpus(told.notes, roles, label=(told.label,)), told.half, told.seed)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        rows = [SplitRows.of(batch, told.label) for batch in corpus.batches()]
        held_out = draw_held_out(rows, SHARE, str(told.seed).encode())
        learned_from = held_out.without(corpus)
        counts = count_words(learned_from, scratch)
        vectors = train(
            learned_from,
            VectorSettings(),
            seed=told.seed,
            workers=2,
            scratch=scratch / "t",
            counts=counts,
        )
        auto = Obfuscated().floor(counts.n_patients)
        print(f"{counts.n_patients:,} patients, {counts.n_tokens:,} words; auto is {auto}\n")
        print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}", flush=True)
        for setting in told.settings:
            context = replace(
                released(corpus, counts, vectors, setting, scratch),
                test_patients=held_out.patients,
                unread=True,
            )
            cells = row(context, setting, told.label, told.model or ["tfidf-lr"])
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
