"""Linkage of protected biographies with public articles about the same people, by protection.

Usage: python benchmarks/linkage.py linkage.jsonl.gz [--scrubbed scrubadub.jsonl] [--keep DIR]
[--only TEXT]

The file has a person a line: name, public_knowledge (the body of an encyclopedia article), note
(its lead). The note is protected; the attacker has all articles, and names a person for each note.
Attackers: without the vectors (words, word pairs, BM25, length and layout); one who trains vectors
on the articles and runs our tool on them, with the settings of the release; and an attacker with
the exact channel and vectors. Weights of an attacker's matchers are learnt on the other half of the
people. Writes two Markdown tables to stdout; intervals are by person.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from clinveil import Key
from clinveil.attacks import OWN, WITH, WITHOUT, Assets, LinkageSides, Own, View
from clinveil.channel import Channel, ChannelSettings, WordObfuscator, build_channel
from clinveil.core import Finding, read_findings, words, write_findings
from clinveil.corpus import TEXT, corpus_of_texts
from clinveil.phi import NoteDeidentifier
from clinveil.vectors import Vectors, VectorSettings, count_words, load_vectors, save_vectors, train

CBOW5 = VectorSettings(algorithm="cbow", window=5, epochs=5)
WIDE = VectorSettings()
THEIRS = 10  # passes over the articles, alone or with the notes, of skip-gram
SOFT = ChannelSettings(n=10, min_patients=1, allow_small=True)
MIN_PATIENTS = 5
TOP = 10
LABELS = {
    "words": "words alone (TF-IDF)",
    "mean vector": "mean vector alone",
    "channel": "likelihood alone",
}


@dataclass(frozen=True)
class Protection:
    """One row of the table: what is done to the notes, and what the attackers may hold of it."""

    name: str
    texts: Sequence[str] = field(repr=False)
    channel: Channel | None = None
    vectors: Vectors | None = None
    settings: tuple[VectorSettings, ChannelSettings] | None = None


@dataclass(frozen=True)
class Case:
    """The people, and a key."""

    notes: Sequence[str]
    known: Sequence[str]
    seed: int
    scratch: Path
    keep: Path

    @property
    def sides(self) -> LinkageSides:
        """Unprotected notes beside the articles."""
        rows = np.arange(len(self.notes))
        return LinkageSides(self.notes, self.known, rows, rows)


def trained(case: Case, whose: str, texts: Sequence[str], how: VectorSettings) -> Vectors:
    """Vectors trained on texts, or those that an earlier call of the same kind kept."""
    name = f"{whose}-{how.algorithm}-{how.window}-{how.epochs}-{case.seed}"
    if not (case.keep / name).exists():
        how = how if whose == "ours" or how.epochs else how.but(epochs=THEIRS)
        made = train(corpus_of_texts(texts), how, seed=case.seed, workers=2, scratch=case.scratch)
        save_vectors(made, case.keep / name)
    return load_vectors(case.keep / name)


def identified(case: Case, mode: str) -> list[str]:
    """The notes after PHI replacement, as a release does it."""
    made = NoteDeidentifier(Key.from_seed(case.seed), mode=mode)
    texts = [
        text
        for batch in corpus_of_texts(case.notes).batches()
        for text in made(batch).batch.column(TEXT).to_pylist()
    ]
    if len(texts) < len(case.notes):
        raise SystemExit("detectors failed")
    return texts


def obfuscated(
    case: Case,
    name: str,
    how: VectorSettings,
    *,
    more: bool = False,
    **channel: object,
) -> Protection:
    """A row of our own: PHI surrogates, then vectors trained on the notes (and the articles) and a
    channel.
    """
    entered = identified(case, "replace")
    vectors = trained(
        case, "both" if more else "ours", [*entered, *(case.known if more else ())], how
    )
    settings = ChannelSettings.model_validate({"min_patients": MIN_PATIENTS, **channel})
    counts = count_words(corpus_of_texts(entered), case.scratch)
    made, _ = build_channel(vectors, settings, threads=2, counts=counts)
    run = WordObfuscator(made, Key.from_seed(case.seed + 1))
    texts = [
        text
        for batch in corpus_of_texts(entered).batches()
        for text in run(batch).batch.column(TEXT).to_pylist()
    ]
    own = settings.but(min_patients=1, allow_small=True)
    return Protection(name, texts, made, vectors, (how, own))


def plain_rows(
    case: Case, scrubbed: Sequence[str] | None
) -> dict[str, Callable[[], Sequence[str]]]:
    """Rows without a channel: nothing, masks, deletion, removal and replacement of PHI."""
    rng = np.random.default_rng(case.seed)
    people = Counter(word for note in case.notes for word in set(words(note)))
    made: dict[str, Callable[[], Sequence[str]]] = {"nothing": lambda: case.notes}
    if scrubbed:
        made["scrubadub 2.0.1, its detectors of today (rules, no names)"] = lambda: scrubbed
    return made | {
        "PHI removed (ours, rules)": lambda: identified(case, "remove"),
        "PHI replaced by surrogates (ours, rules)": lambda: identified(case, "replace"),
        "half of the words deleted at random": lambda: [
            _dropped(note, rng, 0.5) for note in case.notes
        ],
        "every word with a capital and every number masked": lambda: [
            _masked(note) for note in case.notes
        ],
        "only words that five people or more have": lambda: [
            " ".join(w for w in words(note) if people[w] >= MIN_PATIENTS) for note in case.notes
        ],
    }


def _dropped(note: str, rng: np.random.Generator, share: float) -> str:
    return " ".join(word for word in note.split() if rng.random() >= share)


def _masked(note: str) -> str:
    return re.sub(r"\b(?:[A-Z]\w*|\w*\d\w*)", "X", note)


NEAR = {"n": "3-14"}
OURS: dict[str, tuple[VectorSettings, dict[str, object]]] = {
    "neighbours 3-14, CBOW of 5 passes (paper A)": (CBOW5, NEAR),
    "neighbours 7, CBOW of 5 passes": (CBOW5, {"n": 7}),
    "neighbours 3-14, skip-gram, window 40": (WIDE, NEAR),
    "the same, articles as more text for the vectors": (WIDE, {**NEAR, "more": True}),
}
"""Our rows with a channel: vectors, and settings of the channel."""


class Attackers:
    """Runs all attackers on one protection."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def __call__(self, row: Protection) -> list[Finding]:
        """The findings of all attackers who can try it."""
        sides = replace(
            self.case.sides, released=[text if words(text) else "x" for text in row.texts]
        )
        own = self._trained(row) if row.settings else None
        rng = np.random.default_rng(self.case.seed)
        return View("articles", sides).findings(
            Assets(row.channel, row.vectors, own), rng, top=TOP, each=True
        )

    def _trained(self, row: Protection) -> Own:
        how, channel = row.settings
        made = trained(self.case, "theirs", self.case.known, how)
        return Own(made, tuple(build_channel(made, one, threads=2)[0] for one in (channel, SOFT)))


def _cell(found: Sequence[Finding], attacker: str, measure: str = "attack.linkage") -> str:
    one = next((f for f in found if f.measure == measure and f.attack == attacker), None)
    return "–" if one is None else f"{one.count} ({one.low:.3f} to {one.high:.3f})"


def _number(found: Sequence[Finding], attacker: str, measure: str = "attack.linkage") -> str:
    one = next((f for f in found if f.measure == measure and f.attack == attacker), None)
    return "–" if one is None else f"{one.count}"


def _most(found: Sequence[Finding], *attackers: str) -> str:
    """The most that one of these attackers names rightly."""
    right = [f.count or 0 for f in found if f.measure == "attack.linkage" and f.attack in attackers]
    return str(max(right)) if right else "–"


def _rank(found: Sequence[Finding], attacker: str) -> str:
    one = next(
        (f for f in found if f.measure == "attack.linkage" and f.attack == attacker),
        None,
    )
    return "–" if one is None else f"{one.numbers['median']:g}, {one.numbers[f'top_{TOP}']:.2f}"


def tables(rows: Sequence[tuple[str, list[Finding]]], n: int) -> Iterator[str]:
    """The short table, and the long one."""
    yield f"Of {n} notes, the attacker names the right person; chance is 1."
    yield ""
    yield "| protection | any recipient | trains own vectors | thief of the vectors |"
    yield "| --- | --: | --: | --: |"
    for name, found in rows:
        yield (
            "| "
            + " | ".join(
                [name, _number(found, WITHOUT), _number(found, OWN), _most(found, WITH, "channel")]
            )
            + " |"
        )
    yield ""
    head = [
        "protection",
        "attacker",
        "right (95 %)",
        "singled out",
        "median rank, in the first ten",
        "shuffled",
    ]
    yield "| " + " | ".join(head) + " |"
    yield "| --- | --- | --: | --: | --: | --: |"
    for name, found in rows:
        for who in ("words", WITHOUT, OWN, "mean vector", "channel", WITH):
            one = next(
                (f for f in found if f.measure == "attack.linkage" and f.attack == who),
                None,
            )
            if one is not None:
                more = [_cell(found, who), _number(found, who, "attack.linkage_singled")]
                label = (
                    "words alone (TF-IDF)"
                    if who == "words"
                    else f"{who} alone"
                    if who in ("mean vector", "channel")
                    else who
                )
                yield (
                    "| "
                    + " | ".join(
                        [name, label, *more, _rank(found, who), f"{(one.control or 0) * n:.1f}"]
                    )
                    + " |"
                )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("people", type=Path)
    parser.add_argument(
        "--scrubbed", type=Path, help="the notes as another tool wrote them: a JSON string a line"
    )
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument(
        "--keep", type=Path, help="folder of trained vectors, for another call with other rows"
    )
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with gzip.open(asked.people, "rt", encoding="utf-8") as file:
        people = [json.loads(line) for line in file]
    scrubbed = (
        [json.loads(line) for line in asked.scrubbed.read_text().splitlines()]
        if asked.scrubbed
        else None
    )
    with tempfile.TemporaryDirectory() as scratch:
        kept = asked.keep or Path(scratch)
        case = Case(
            [p["note"] for p in people],
            [p["public_knowledge"] for p in people],
            asked.seed,
            Path(scratch),
            kept,
        )
        done = dict(measured(case, scrubbed, asked.only))
    print("\n".join(tables(list(done.items()), len(people))))


def measured(
    case: Case, scrubbed: Sequence[str] | None, only: str
) -> Iterator[tuple[str, list[Finding]]]:
    """The findings of each row, those of rows that an earlier call measured, too."""
    attack = Attackers(case)
    rows = dict[str, Callable[[], Protection]]()
    for name, texts in plain_rows(case, scrubbed).items():
        rows[name] = lambda name=name, texts=texts: Protection(name, texts())
    for name, (how, rest) in OURS.items():
        rows[name] = lambda name=name, how=how, rest=rest: obfuscated(case, name, how, **rest)
    for name, make in rows.items():
        file = case.keep / (re.sub(r"\W+", "-", name) + ".json")
        if not file.exists() and only in name:
            began = time.process_time()
            write_findings(file, "benchmark linkage", attack(make()), seed=case.seed)
            print(
                f"{name}: {time.process_time() - began:.1f} s of processor time",
                file=sys.stderr,
                flush=True,
            )
        if file.exists():
            yield name, read_findings(file)


if __name__ == "__main__":
    main()
