"""Train the tagger of the package: `python training/train_bundled.py ../shared/data OUT.npz`.

Needs the public data next to the project (`notes`, `people`, `casing`, `phi`); the same data give
the same bytes. Every fifth actor, every second query of ASQ-PHI and two fifths of MTSamples are
never read for training; no name that `held_out` keeps is ever put into a text.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import clinveil.lexicons as lexicons
import clinveil.phi.tagger as package
from clinveil.core import Span
from clinveil.lexicons import LexicalClass, lexical_classes
from clinveil.phi import NAMES, NoteView, Tagger, TaggerModel
from tagger_training import invent
from tagger_training.invent import Labelled
from tagger_training.people import People, may_train
from tagger_training.train import save_tagger, threshold_within, train_tagger, written_small

SEED = 13
DATE = "2026-11-28"
INVENTED = 22_000
DEMO_PATIENTS = 90
MOST_FALSE = 0.002  # of the words of clinical notes that the rules leave alone
SOURCES = {
    "templates and demo generator of clinveil": "Apache-2.0",
    "names of the US census 1990, Faker's locale lists": "public domain, MIT",
    "MTSamples (three fifths)": "CC0 as stated by its collection",
    "Wikipedia: leads of actors (four fifths), sentences": "CC BY-SA",
    "Biographical Directory of the US Congress": "public domain",
    "ASQ-PHI (every second query of the dev part)": "MIT",
}
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n")
csv.field_size_limit(1 << 30)


def part(key: str, of: int) -> int:
    """Which of some equal parts a row belongs to."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") % of


def table(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def lines_of(path: Path) -> list[str]:
    """Return the lines of a compressed text."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(file)


def mtsamples(data: Path, parts: tuple[int, ...]) -> list[str]:
    """The notes of some fifths, with the line breaks that became commas put back."""
    rows = table(data / "notes" / "mtsamples.csv.gz")
    notes = [row["transcription"] for row in rows if part(row["doc_id"], 5) in parts]
    return [re.sub(r"(?<=[.:]) ?, ?|(?<=[.:]),(?=\S)", "\n", note) for note in notes]


def sentences(texts: list[str]) -> list[str]:
    return [
        s for text in texts for s in (x.strip() for x in _SENTENCE.split(text)) if 12 < len(s) < 400
    ]


def without_names(texts: list[str]) -> list[str]:
    """Those in which the rules find no name: what is in them counts as none."""
    return [text for text in texts if not any(NAMES.find(NoteView(text)))]


def plain_of_people(texts: list[str]) -> list[str]:
    """Sentences of general text without a usual first name or surname that is no word."""
    usual = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY

    def named(word: str) -> bool:
        classes = lexical_classes(word)
        return bool(classes & usual and not classes & LexicalClass.WORD)

    return [
        text
        for text in texts
        if not any(named(word) for word in re.findall(r"\b[A-Z][\w'-]+", text))
    ]


def actors(rows: list[dict[str, str]], people: People, rng: Random) -> Iterator[Labelled]:
    """Sentences on an actor with another name in their place, of those that name no one else."""
    for row in rows:
        words = [w for w in re.findall(r"[^\W\d_][\w'-]+", row["name"]) if len(w) > 1]
        pattern = (
            re.compile(r"\b(?:%s)(?:[ -](?:%s|\w\.))*\b" % (("|".join(map(re.escape, words)),) * 2))
            if words
            else None
        )
        if pattern is None:
            continue
        for sentence in _SENTENCE.split(row["text"])[:4]:
            spans = tuple(
                Span(*m.span(), "NAME") for m in pattern.finditer(sentence) if m[0][0].isupper()
            )
            if spans and plain_of_people([pattern.sub("", sentence)]) and len(sentence) < 400:
                yield invent.in_other_case(
                    invent.refilled(Labelled(sentence, spans), people, rng), rng
                )


def asq(data: Path, odd: int) -> list[Labelled]:
    lines = (data / "phi" / "asq_phi_dev.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        Labelled(row["text"], tuple(_untitled(s) for s in row["spans"] if s["type"] == "NAME"))
        for row in rows
        if part(row["text"], 2) == odd
    ]


def _untitled(span: dict[str, Any]) -> Span:
    """A gold name without the title that the set counts to it."""
    title = re.match(r"(?:(?:Drs?|Mrs?|Ms|Miss|Prof)\b\.?\s*)+(?=\w)", span["text"])
    return Span(span["start"] + (title.end() if title else 0), span["end"], "NAME")


def every(_key: str) -> bool:
    """Return that a row is read, whatever its key is."""
    return True


def spaced(line: str) -> str:
    """Return a tokenised sentence without the spaces before its punctuation."""
    return re.sub(r" (?=[.,;:?!)'])|(?<=[(]) ", "", line.strip())


def texts(data: Path, rng: Random, reads: Callable[[str], bool] = every) -> list[Labelled]:
    """Return the training texts.

    Args:
        reads: whether an actor (by id) or a Wikipedia sentence may be read.
    """
    actor_rows = table(data / "people" / "actors.csv.gz")
    rows = [row for row in actor_rows if part(row["id"], 5) != 0 and reads(row["id"])]
    congress = table(data / "people" / "congress.csv.gz")
    real = [row["name"] for row in rows] + [
        f"{row['given']} {row['family'].title()}" for row in congress
    ]
    people = People(real)
    clinical = without_names(sentences(mtsamples(data, (0, 1, 2))))
    hosts = [
        invent.projected(s, people, rng) if rng.random() < 0.5 else Labelled(s) for s in clinical
    ]
    passages = [Labelled("\n".join(clinical[at : at + 8])) for at in range(0, len(clinical), 32)]
    lines = lines_of(data / "casing" / "wiki_sentences.txt.gz")
    wiki = plain_of_people([spaced(line) for line in lines if reads(line.strip())])
    clauses = plain_of_people([c.strip() for row in congress for c in row["text"].split(";")[1:4]])
    general = [
        invent.in_other_case(Labelled(s), rng)
        for s in rng.sample(wiki, 2500) + rng.sample(clauses, 1500)
    ]
    queries = asq(data, 0)
    more = [invent.refilled(query, people, rng) for query in queries for _ in range(3)]
    more += [query for query in queries for _ in range(3) if not query.spans]
    named = list(actors(rng.sample(rows, 6000), people, rng))
    print(
        f"{len(hosts)} sentences, {len(passages)} passages, {len(general)} general, {len(named)} of"
        " actors"
    )
    return invent.all_texts(
        [
            invent.invented(INVENTED, people, rng, hosts),
            invent.demo_texts(DEMO_PATIENTS, SEED, people, rng),
            passages,
            general,
            more,
            named,
        ],
        rng,
    )


def vocabulary(data: Path) -> Counter[str]:
    """Words that clinical notes, code titles and general sentences write in small letters."""
    general = lines_of(data / "casing" / "wiki_sentences.txt.gz")
    titles = [
        row["description"]
        for name in ("icd9cm", "icd10cm")
        for row in table(data / "codes" / f"{name}.csv.gz")
    ]
    return written_small([*mtsamples(data, (0, 1, 2)), *general, *titles])


def tuning(data: Path) -> list[Labelled]:
    """Clinical notes that were not trained on, with all that the rules find marked."""
    from clinveil.phi import Finder

    finder = Finder([d for d in Finder().detectors if d.name != "tagger"])
    return [Labelled(text, tuple(finder.find(text))) for text in mtsamples(data, (3,))]


def recipe_hash() -> str:
    """SHA-256 of this file and of the code, templates and word lists that say what the fit sees."""
    runtime = Path(package.__file__).parent
    here = Path(invent.__file__).parent
    mine = [here / f"{name}.py" for name in ("crfsuite", "invent", "people", "tokens", "train")]
    mine += [runtime / "features.py"]
    lists = Path(lexicons.__file__).parent.rglob("*.*")
    files = [
        Path(__file__),
        *mine,
        *here.glob("*.txt"),
        *(file for file in lists if file.suffix in (".py", ".txt")),
    ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


def make(data: Path) -> TaggerModel:
    began = time.process_time()
    made = texts(data, Random(SEED))
    check_no_name_is_held_out(made)
    print(f"texts after {time.process_time() - began:.0f} s of CPU")
    card = {
        "date": DATE,
        "recipe": recipe_hash(),
        "seed": SEED,
        "sources": SOURCES,
        "most_false": MOST_FALSE,
    }
    model = train_tagger(made, ("NAME",), 0.5, card, vocabulary(data))
    print(
        f"fitted after {time.process_time() - began:.0f} s: {model.card['tokens']} tokens,"
        f" {len(model.properties)}"
    )
    threshold = round(threshold_within(Tagger(model), tuning(data), MOST_FALSE), 4)
    return replace(model, threshold=threshold)


def check_no_name_is_held_out(made: list[Labelled]) -> None:
    """Stop if one is; two letters may be initials."""
    for text in made:
        for span in text.spans:
            words = re.findall(r"[^\W\d_]{3,}", text.text[span.start : span.end])
            if span.label == "NAME" and not may_train(" ".join(words)):
                raise SystemExit("a name that is kept for tests is in the training text")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    model = make(given.data)
    save_tagger(model, given.out, force=True)
    print(f"threshold {model.threshold}, {given.out.stat().st_size} bytes")
