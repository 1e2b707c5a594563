"""Runs one list of commands with two source trees, and compares all that they write, file by file.

`python tests/same_bytes.py --before OLD/src --after src [--only NAME ...] [--keep FOLDER] [--jobs 1] [--studies]`

Every command is run as `python -m clinveil …` with a public seed, on an invented corpus, in a folder of its tree with
the same relative paths. Files are compared as bytes; JSON where bytes differ without the fields of VOLATILE, pages
and messages without what WORDS blots out. It exits with 1 on any difference. With --keep the results of the old tree
are kept in FOLDER and used again as long as tree and command are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Fields of any JSON that may differ between two runs of one program: when, how long, which version and machine.
VOLATILE = frozenset({"version", "created", "started", "finished", "seconds", "elapsed", "minutes", "platform"})
# Fields of one file: the marker of vault and OUT carries a number drawn anew for each run.
DRAWN = {".clinveil.json": frozenset({"run"})}
# Of manifests and states: digests of other files, which hold times, and hashes that name a run by its code's version.
VOLATILE |= {"self_sha256", "asked", "run", "code", "card_sha256"}
DIGESTS = "SHA256SUMS"
# Settings that a command no longer takes because it never used them, where nothing was asked with them.
NOTHING_ASKED: tuple[Any, ...] = ([], None, False)
TASK = re.compile(r"^(.*\btasks)/([0-9a-f]{32})/(.*)$")
# Of pages and messages: what a clock or a version says.
WORDS = (
    (re.compile(r'<data value="[\d.]+">(?=<span>)'), "<data>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?( UTC)?"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)? ?(s|ms|min|h|seconds?|minutes?|hours?)\b"), "<span>"),
    (re.compile(r"clinveil \d+\.\d+\.\d+\S*"), "clinveil <version>"),
)
TEXT = frozenset({".html", ".md", ".txt", ".out", ".err"})


@dataclass(frozen=True)
class Case:
    """Commands that belong together; each writes below the folder of the case's name.

    Attributes:
        lines: commands; `4! release …` must exit with 4, all others with 0. `{name}` is the folder of the case.
        needs: cases whose files these commands read.
        slow: only with --studies.
        names_only: only the names of the files are compared, as no seed can be given.
    """

    name: str
    lines: tuple[str, ...]
    needs: tuple[str, ...] = ()
    slow: bool = False
    names_only: bool = False


NOTES, PEOPLE, CODES = "generate/demo/notes.parquet", "generate/demo/patients.parquet", "generate/demo/codes.csv"
FEW, FEWER, THIRD = (f"generate/{name}/notes.parquet" for name in ("few", "others", "third"))
OTHERS, REFERENCE = (
    "fixtures/others.csv",
    "fixtures/reference.csv",
)  # of other patients: generated ones have one row of ids
LEFT, MISSED = "missed/left.parquet", "missed/left.parquet.vault/missed.parquet"
WRITTEN = "unigram/out/vault/refused/notes.parquet"
SEED = "--seed 1 -q"
TINY = "--size tiny --layers 1 --width 16 --epochs 1 --vocabulary-size 400"


def case(name: str, *lines: str, needs: str = "", slow: bool = False, names_only: bool = False) -> Case:
    """A case, with the names of those that it needs in one string."""
    return Case(name, lines, tuple(needs.split()), slow, names_only)


def corpus_cases() -> Iterator[Case]:
    """Notes made, read, prepared, and freed of identifiers."""
    yield case(
        "generate",
        "generate -o {name}/demo --patients 120 --seed 1 --workers 1",
        *(
            f"generate -o {{name}}/{name} --patients {patients} --seed {seed} --workers 1"
            for name, patients, seed in (("few", 25, 2), ("others", 15, 3), ("third", 15, 4))
        ),
    )
    yield case(
        "inspect",
        f"inspect {NOTES} --label diagnosis_group --json {{name}}/findings.json",
        f"inspect {NOTES} --keep note_type",
        "inspect fixtures/notes.csv --text note --id number --patient person",
        "inspect fixtures/folder --json -",
        "inspect fixtures/noteevents.csv --json -",
        needs="generate",
    )
    phi = f"deidentify {NOTES} --patients {PEOPLE} --workers 1 {SEED}"
    yield case("replace", f"{phi} --keep diagnosis_group -o {{name}}/notes.parquet --spans", needs="generate")
    yield case("remove", f"{phi} --mode remove -o {{name}}/notes.csv --vault {{name}}/vault", needs="generate")
    yield case(
        "tag",
        f"deidentify {NOTES} --mode tag --workers 2 {SEED} -o {{name}}/notes.jsonl --keep code",
        "deidentify fixtures/notes.csv --text note --id number --patient person --mode replace --spans "
        f"{SEED} -o {{name}}/notes.tsv.gz",
        f"deidentify fixtures/noteevents.csv --mode replace --spans {SEED} -o {{name}}/mimic.csv",
        needs="generate",
    )
    yield case("missed", f"{phi} --mode remove --miss-rate 0.3 -o {{name}}/left.parquet", needs="generate")
    yield case("missed-surrogates", f"{phi} --miss-rate 0.3 -o {{name}}/left.parquet", needs="generate")
    yield case(
        "medtext",
        f"prepare medtext {NOTES} -o {{name}}/small --train 200 --valid 20 --test 20 --min-count 2 {SEED}",
        f"prepare medtext {NOTES} -o {{name}}/all --size all --train 100 --valid 20 --test 20 --split note "
        f"--general fixtures/general.txt --tags published --min-patients 2 --seed 2",
        "prepare medtext fixtures/noteevents.csv -o {name}/mimic --words 300 --valid 5 --test 5 --seed 3",
        needs="generate",
    )
    icd9 = "prepare icd9 fixtures/noteevents.csv fixtures/diagnoses.csv"
    yield case(
        "icd9",
        f"{icd9} -o {{name}}/first.csv",
        f"{icd9} -o {{name}}/published.parquet --table published",
        f"{icd9} -o {{name}}/leaf.jsonl --labels leaf --top 3 --column codes --only CATEGORY=Report",
        f"{icd9} -o {{name}}/leaf-published.csv --labels leaf --table published --keep CATEGORY",
    )


def vector_cases() -> Iterator[Case]:
    """Vectors trained, changed, attacked; notes obfuscated with them."""
    embed = f"embed {LEFT} -o {{name}}/v --dim 16 --workers 1 {SEED}"
    for algorithm in ("cbow", "skipgram", "fasttext"):
        yield case(algorithm, f"{embed} --algorithm {algorithm} --epochs 1", needs="missed")
    yield case("glove", f"{embed} --algorithm glove --epochs 2 --window 3", needs="missed")
    single = f"{embed} --algorithm glove --glove-variant single --epochs 2 --min-count 3"
    yield case("glove-single", single, needs="missed")
    yield case("vectors", f"embed {NOTES} -o {{name}}/v --dim 16 --epochs 2 --workers 1 {SEED}", needs="generate")
    yield case(
        "mitigate",
        f"mitigate skipgram/v -o {{name}}/scrubbed --scrub-top 300 --patients {PEOPLE} -q",
        "mitigate skipgram/v -o {name}/floor --min-patients 5 -q",
        f"mitigate skipgram/v -o {{name}}/noise --noise 0.2 {SEED}",
        needs="skipgram",
    )
    given = f"obfuscate {NOTES} --vectors vectors/v --workers 1 {SEED} -o {{name}}"
    yield case("obfuscate", f"{given}/notes.parquet --keep diagnosis_group", needs="vectors")
    keyed = f"{given}/notes.csv -n 5-9 --n-per type --scope patient --layout keep --numbers mask --unknown drop"
    yield case("obfuscate-keyed", f"{keyed} --keep-words fixtures/words.txt --min-patients 8", needs="vectors")
    yield case("obfuscate-note", f"{given}/notes.jsonl -n 7 --scope note", needs="vectors")
    yield case(
        "obfuscate-noise",
        f"{given}/laplace.parquet --mechanism laplace --unchanged 0.5",
        f"{given}/gaussian.parquet --mechanism gaussian --sigma 0.5",
        needs="vectors",
    )
    own = f"obfuscate {NOTES} --dim 12 --epochs 1 --workers 1 {SEED} -o {{name}}/notes.parquet --vault {{name}}/safe"
    yield case("obfuscate-own", own, needs="generate")
    yield case(
        "attack-names",
        f"attack names skipgram/v cbow/v --names {MISSED} --metric cosine --metric cityblock --draws 99 "
        f"--find-names --workers 1 {SEED} --json {{name}}/findings.json",
        f"3! attack names mitigate/scrubbed --names {MISSED} --k 20 --draws 99 --workers 1 --seed 1",
        needs="cbow mitigate missed",
    )
    surrogates = "missed-surrogates/left.parquet"
    yield case(
        "attack-surrogates",
        f"embed {surrogates} -o {{name}}/vectors --algorithm skipgram --dim 16 --epochs 1 --workers 1 {SEED}",
        f"attack names {{name}}/vectors --names {surrogates}.vault/missed.parquet --draws 99 "
        f"--surrogates {surrogates}.vault/surrogates.parquet {SEED} --workers 1 --json {{name}}/findings.json",
        needs="missed-surrogates",
    )
    known = f"--patients {MISSED} --codes {CODES} --workers 1 {SEED}"
    yield case(
        "attack-association",
        f"attack association skipgram/v glove/v {known} --permutations 99 --draws 50 --json {{name}}/findings.json",
        f"attack association cbow/v {known} --permutations 99 --draws 50 --paper-p --metric cosine",
        needs="skipgram glove cbow",
    )
    yield case(
        "attack-scenario",
        f"attack scenario skipgram/v {known} --permutations 99 --draws 20 --drawn 8 --min-patients 1 "
        "--everyone 120 --json {name}/findings.json",
        f"attack scenario cbow/v glove/v {known} --permutations 99 --draws 20 --drawn 8 --min-patients 1 "
        "--targets fixtures/targets.txt --metric euclidean",
        needs="skipgram glove cbow",
    )


def _set(keys: str) -> str:
    """The `--set` flags of keys and values."""
    return " ".join(f"--set {key}" for key in keys.split())


def model_cases() -> Iterator[Case]:
    """Language models, the notes that they write, and the audits of both."""
    shared = f"--as synthetic --no-phi --again --workers 1 --min-patients 2 {SEED} -o {{name}}"
    write = f"4! release {FEW} --patients generate/few/patients.parquet {shared}"
    tiny = "lm.size=tiny lm.layers=1 lm.width=16 lm.epochs=1 lm.vocabulary_size=400 synthetic.longest=60"
    found = "--json {name}/findings.json"
    yield case(
        "unigram",
        f"{write}/out {_set('lm.model=unigram synthetic.count=30 synthetic.held_out=0.3')}",
        "4! verify {name}/out/vault/refused",
        needs="generate",
    )
    again = "synthetic.source={name}/out/vault/model synthetic.count=6 synthetic.temperature=0.8 synthetic.top_p=0.9"
    yield case(
        "lstm",
        f"{write}/out {_set(f'{tiny} synthetic.count=8')}",
        f"{write}/again {_set(again)}",
        needs="generate",
    )
    gpt = f"{tiny} lm.model=gpt lm.heads=2 lm.window=32 synthetic.count=6"
    yield case("gpt", f"{write}/out {_set(gpt)}", needs="generate")
    yield case(
        "attack-copies",
        f"attack copies {WRITTEN} --training {FEW} --held-out {OTHERS} --span 3 --span 5 {SEED} {found}",
        f"attack copies {FEW} --training {FEW} --held-out {OTHERS} --seed 2",
        needs="unigram",
    )
    yield case(
        "attack-membership",
        f"attack membership {FEW} {OTHERS} --from lstm/out/vault/model --reference {REFERENCE} {SEED} {found}",
        f"attack membership {FEW} --synthetic {WRITTEN} --from unigram/out/vault/model --seed 1",
        f"attack membership {FEW} {OTHERS} --synthetic {WRITTEN} --most 40 {SEED} --json -",
        needs="unigram lstm",
    )
    plant = f"attack canaries {FEW} --each 2 --repeats 1 --repeats 8 --workers 1 {SEED}"
    yield case(
        "attack-canaries",
        f"{plant} --model ngram {found}",
        f"{plant} {TINY} --json {{name}}/lstm.json",
        needs="generate",
    )
    leave = f"attack leaveout {FEWER} --workers 1 {SEED}"
    units, least = "--units 3 --reseeds 2", "--units 2 --reseeds 1 --seeds 1"
    yield case(
        "attack-leaveout",
        f"{leave} --mode unigram {found}",
        f"{leave} --mode unigram --unit note --json {{name}}/notes.json",
        f"{leave} --model unigram {units} --plant-names --from-text -o {{name}}/counted",
        f"{leave} --model ngram {units} --unit note -o {{name}}/ngram",
        f"{leave} {TINY} {least} -o {{name}}/lstm",
        f"{leave} {TINY} {least} --mode compat -o {{name}}/compat",
        f"{leave} {TINY} {least} --vocabulary words --pretrain {THIRD} -o {{name}}/pretrained",
        f"{leave} --model gpt {TINY} --heads 2 --window 32 {least} -o {{name}}/gpt",
        needs="generate",
    )
    perplexity = f"evaluate perplexity {OTHERS} --workers 1"
    yield case(
        "perplexity",
        f"{perplexity} --from lstm/out/vault/model {SEED} {found}",
        f"{perplexity} --train {WRITTEN} --model ngram --seed 1",
        f"{perplexity} --train {FEW} {TINY} {SEED} --json {{name}}/lstm.json",
        f"{perplexity} --train {FEW} --model unigram {SEED} --json -",
        needs="unigram lstm",
    )


def utility_cases() -> Iterator[Case]:
    """What protected notes and vectors are good for."""
    found = "--json {name}/findings.json"
    score = "evaluate similarity skipgram/v --pairs fixtures/pairs.csv --draws 100"
    yield case(
        "similarity",
        f"{score} {SEED} {found}",
        f"{score} --seed 1 --subwords fasttext/v --pairs fixtures/more.csv",
        f"{score} --seed 1 --protocol clinicalnlp --notes {NOTES} --min-count 5",
        f"evaluate similarity fasttext/v --pairs fixtures/more.csv --draws 100 {SEED} --missing zero --json -",
        needs="skipgram fasttext",
    )
    classify = f"evaluate classification {NOTES} obfuscate/notes.parquet --label diagnosis_group --min-class 10 {SEED}"
    yield case(
        "classification",
        f"{classify} --model lr --model svm {found}",
        f"evaluate classification {NOTES} --label diagnosis_group --min-class 10 --seed 1",
        needs="obfuscate",
    )
    networks = (
        "--vectors vectors/v --released-vectors vectors/v --max-documents 200 --max-tokens 30 --epochs 2 --seeds 1"
    )
    yield case(
        "networks",
        f"{classify} {networks} --model cnn --model lstm {found}",
        f"{classify} {networks} --model cnn-attention --refit --setting plain-vectors-on-protected --static "
        "--json {name}/transfer.json",
        needs="obfuscate",
    )
    small = "--hidden 8 --seeds 2 --epochs 2 --batch 32"
    yield case(
        "nli",
        f"evaluate nli skipgram/v --train fixtures/nli.csv {small} {SEED} {found}",
        f"evaluate nli cbow/v --train fixtures/nli.csv --test fixtures/nli.csv {small} --features difference --seed 1",
        needs="skipgram cbow",
    )
    yield case(
        "casing",
        f"evaluate casing fixtures/general.txt --size tiny --hidden 16 --layers 1 --epochs 1 --batch 8 --beam 2 {SEED} "
        f"{found}",
        f"evaluate casing {FEWER} --test fixtures/general.txt --size tiny --hidden 8 --layers 1 --epochs 1 --beam 2 "
        "--state line --seed 1",
        needs="generate",
    )


def release_cases() -> Iterator[Case]:
    """The main job, what is made of it, and mistakes. No release with a seed may leave: it ends in vault/refused."""
    label = "--label diagnosis_group"
    run = f"release {NOTES} --patients {PEOPLE} --dim 16 --epochs 2 --workers 1 {SEED}"
    yield case(
        "release",
        f"4! {run} {label} --keep note_type -o {{name}}/out",
        "4! verify {name}/out/vault/refused",
        "report {name}/out -o {name}/again.html",
        "report {name}/out -o {name}/external.html --edition external",
        f"evaluate classification {NOTES} {{name}}/out/vault/refused/notes.parquet {label} --vault {{name}}/out/vault "
        f"--min-class 10 {SEED}",
        f"{run} --dry-run -o {{name}}/never",
        needs="generate",
    )
    small = f"4! release {FEW} --allow-small --dim 12 --epochs 1 --workers 1 {SEED} -o {{name}}/out"
    run_ = f"release {NOTES} --patients {PEOPLE} --workers 1 --again {SEED}"
    strict = "--profile strict --min-patients 2 -n 3-6 --order source --layout keep --numbers mask --n-per type"
    people = "--patients generate/few/patients.parquet"
    yield case("release-strict", f"{small} {people} {strict} --algorithm skipgram", needs="generate")
    yield case("release-coded", f"4! {run} {label} --as coded --keep note_type -o {{name}}/out", needs="generate")
    yield case("release-deidentified", f"4! {run_} --as deidentified -o {{name}}/out", needs="generate")
    yield case("release-plain", f"{small} --profile paper --no-phi", needs="generate")
    yield case(
        "mistakes",
        "2! nonsense",
        "2! release",
        f"2! release {NOTES} -o {{name}}/out --dim none",
        f"2! release {NOTES} -o {{name}}/out -n 1",
        f"2! release {NOTES} -o {{name}}/out --config fixtures/unknown.toml",
        f"2! release {NOTES} -o {{name}}/out --config fixtures/wrong.toml",
        f"2! embed {NOTES} -o generate/demo",
        f"2! attack leaveout {FEW} --seed 1",
        f"2! obfuscate {NOTES} -o {{name}}/out.parquet --mechanism laplace",
        f"2! evaluate classification {NOTES}",
        "3! inspect fixtures/absent.parquet",
        "3! inspect fixtures/broken.csv",
        f"3! release {FEW} -o {{name}}/few {SEED}",
        f"3! embed {NOTES} -o {{name}}/v --text absent --seed 1",
        "3! attack names fixtures/broken.csv --names fixtures/words.txt --seed 1",
        "3! report generate",
        "4! verify generate",
        needs="generate",
    )
    yield case("config", f"embed {NOTES} --config fixtures/embed.toml -o {{name}}/v --dim 8 -q", needs="generate")


def slow_cases() -> Iterator[Case]:
    """The demo, whose key is drawn anew each time, and the studies at their tiniest."""
    yield case("demo", "demo -o {name}/out -q --workers 1", slow=True, names_only=True)
    pairs = "--pairs fixtures/pairs.csv"
    yield case(
        "study-jamia-2020",
        f"study jamia-2020 {NOTES} --label diagnosis_group {pairs} -o {{name}}/out --size tiny --n 0 --n 3-5 "
        f"--algorithm cbow --model lr --repetitions 2 --dim 8 --epochs 1 --min-class 10 --no-transfers --workers 1 "
        f"{SEED} --json {{name}}/findings.json",
        needs="generate",
        slow=True,
    )
    yield case(
        "study-jmir-2020",
        f"study jmir-2020 {NOTES} --patients {PEOPLE} --codes {CODES} -o {{name}}/out --size tiny --algorithm skipgram "
        "--window 3 --dim 8 --epochs 1 --glove-epochs 1 --miss-rate 0.3 --draws 99 --permutations 99 "
        f"--patient-draws 20 --scenario-draws 20 --workers 1 {SEED} --json {{name}}/findings.json",
        needs="generate",
        slow=True,
    )
    yield case(
        "study-clinicalnlp-2019",
        f"study clinicalnlp-2019 {NOTES} -o {{name}}/out --size tiny --dropout 0 --units 2 --reseeds 1 --seeds 1 "
        f"--epochs 1 --words 3000 --valid 5 --test 5 --no-compat {pairs} --min-pair-count 1 --nli fixtures/nli.csv "
        f"--general fixtures/general.txt --workers 1 {SEED} --json {{name}}/findings.json",
        needs="generate",
        slow=True,
    )


def all_cases() -> dict[str, Case]:
    """Every case by its name, those that others need first."""
    rooms = (corpus_cases, vector_cases, model_cases, utility_cases, release_cases, slow_cases)
    return {one.name: one for room in rooms for one in room()}


# ---------------------------------------------------------------- small files that the commands read

WORDS_OF_NOTES = [
    "patient",
    "pain",
    "blood",
    "pressure",
    "heart",
    "chest",
    "left",
    "right",
    "history",
    "daily",
    "fever",
    "cough",
    "normal",
    "clinic",
    "exam",
]
SENTENCES = ("The patient has no pain in the chest.", "Blood pressure was normal today.", "She takes aspirin daily.")
SENTENCES += ("He came to the clinic on Monday.", "No fever, and no cough.", "Dr. Smith saw Mary Jones in Boston.")


def write_fixtures(folder: Path) -> None:
    """All of them, the same for both trees."""
    folder.mkdir(parents=True)
    words = WORDS_OF_NOTES
    pairs = [f"{a},{b},{(i * 7 + j) % 11}" for i, a in enumerate(words) for j, b in enumerate(words[i + 1 :])]
    texts = {
        "pairs.csv": ["term1,term2,score", *pairs[::3]],
        "more.csv": ["term1,term2,score", *pairs[1::5], "chest pain,heart,3", "feverish,coughing,2", "zzqx,pain,1"],
        "nli.csv": ["sentence1,sentence2,label", *_sentence_pairs()],
        "general.txt": [SENTENCES[i % 6] if i % 4 else f"In {1900 + i} Anna and NASA met." for i in range(400)],
        "words.txt": words[:5],
        "targets.txt": ["Hypertension", "Diabetes", "Asthma", "401", "250"],
        "notes.csv": ["number,person,note", *(f'{i},p{i % 7},"{_note(i)}"' for i in range(40))],
        "others.csv": list(_plain_notes("o", 1)),
        "reference.csv": list(_plain_notes("r", 2)),
        "noteevents.csv": list(_noteevents()),
        "diagnoses.csv": ["ROW_ID,SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE", *_diagnoses()],
        "broken.csv": ["note_id,text", '1,"never closed', "2,x"],
        "unknown.toml": ["nonsense = 1"],
        "wrong.toml": ['dim = "many"'],
        "embed.toml": ['algorithm = "skipgram"', "dim = 30", "epochs = 1", "workers = 1", "seed = 5"],
    }
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "folder").mkdir()
    for number in range(5):
        (folder / "folder" / f"{number}.txt").write_text(_note(number), encoding="utf-8")


def _note(i: int) -> str:
    who = ("Mary Jones", "John Smith", "Dr. Anna Brown")[i % 3]
    return f"{who} seen on 0{i % 9 + 1}/12/2019, call 617-555-01{i % 90 + 10}. {SENTENCES[i % 6]} {SENTENCES[i % 5]}"


def _plain_notes(patients: str, step: int) -> Iterator[str]:
    yield "note_id,patient_id,text"
    for i in range(90):
        words = " ".join(WORDS_OF_NOTES[(i * step + j * j) % 15] for j in range(12))
        yield f'{patients}{i},{patients}{i % 30},"{_note(i * step)} {words}."'


def _sentence_pairs() -> Iterator[str]:
    labels = ("entailment", "neutral", "contradiction")
    for i in range(180):
        first, second = SENTENCES[i % 6].replace(",", ""), SENTENCES[(i // 3) % 5].replace(",", "")
        yield f"{first} {WORDS_OF_NOTES[i % 15]},{second} {WORDS_OF_NOTES[(i * 4) % 15]},{labels[i % 3]}"


def _noteevents() -> Iterator[str]:
    yield "ROW_ID,SUBJECT_ID,HADM_ID,CHARTDATE,CHARTTIME,STORETIME,CATEGORY,DESCRIPTION,CGID,ISERROR,TEXT"
    for i in range(60):
        kind = "Report" if i % 4 == 3 else "Discharge summary"
        text = f"Name: [**Known lastname {i}**] on [**2101-1-{i % 28 + 1}**]. {_note(i)}"
        yield f'{i},{i % 20},{100 + i % 30},2101-01-01,,,{kind},{kind},,{"1" if i == 9 else ""},"{text}"'


def _diagnoses() -> Iterator[str]:
    codes = ("4019", "42731", "25000", "V4581", "E8788", "5849", "", "41401", "0389", "99591")
    for i in range(75):
        yield f"{i},{i % 20},{100 + i % 25},{i % 3 + 1},{codes[i % 10]}"


# ---------------------------------------------------------------- running


@dataclass(frozen=True)
class Tree:
    """One source tree, and the folder that its commands run in."""

    source: Path
    folder: Path
    marks: Path
    digest: str

    def run(self, one: Case) -> list[str]:
        """Run a case, unless it was run already; returns the commands that did not exit as they should."""
        mark = self.marks / f"{one.name}.json"
        said = {"lines": list(one.lines), "tree": self.digest}
        if mark.exists():
            known = json.loads(mark.read_text(encoding="utf-8"))
            if {key: known.get(key) for key in said} == said:
                return known["wrong"]
            mark.unlink()
        for other in (other for other in all_cases().values() if one.name in other.needs):
            (self.marks / f"{other.name}.json").unlink(missing_ok=True)  # what it read is made anew
        place = self.folder / one.name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        wrong = [said for number, line in enumerate(one.lines, 1) for said in self._command(one, place, number, line)]
        mark.write_text(json.dumps({**said, "wrong": wrong}), encoding="utf-8")
        return wrong

    def _command(self, one: Case, place: Path, number: int, line: str) -> list[str]:
        """Run one command; its output and exit code become files of the case."""
        expected, exclaimed, rest = line.partition("! ")
        code, words = (int(expected), rest) if exclaimed else (0, line)
        given = shlex.split(words.replace("{name}", one.name))
        known = {"PYTHONPATH": str(self.source), "COLUMNS": "200", "NO_COLOR": "1", "TZ": "UTC"}
        known |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        done = subprocess.run(
            [sys.executable, "-m", "clinveil", *given],
            cwd=self.folder,
            env={**os.environ, **known},
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        (place / f"command-{number}.out").write_bytes(done.stdout)
        (place / f"command-{number}.err").write_bytes(done.stderr)
        (place / f"command-{number}.code").write_text(str(done.returncode), encoding="utf-8")
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return [] if done.returncode == code else [f"{' '.join(given)}: exit {done.returncode}, not {code}: {last}"]


def open_tree(source: Path, folder: Path, *, keep: bool) -> Tree:
    """A tree's folder with the fixtures in it; with `keep`, what is there from before stays."""
    if not (source / "clinveil").is_dir():
        raise SystemExit(f"{source} holds no clinveil")
    runs, marks = folder / "runs", folder / "marks"
    digest = tree_digest(source / "clinveil")
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    marks.mkdir(parents=True, exist_ok=True)
    _lay_fixtures(runs, marks)
    return Tree(source.resolve(), runs, marks, digest)


def _lay_fixtures(runs: Path, marks: Path) -> None:
    """The fixtures into a folder, where they are not there already; nothing made from others counts as done."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh, there = Path(scratch) / "fixtures", runs / "fixtures"
        write_fixtures(fresh)
        if there.is_dir() and tree_digest(there) == tree_digest(fresh):
            return
        for old in marks.glob("*.json"):
            old.unlink()
        shutil.rmtree(there, ignore_errors=True)
        shutil.copytree(fresh, there)


def tree_digest(folder: Path) -> str:
    """A hash of all files of a folder."""
    found = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        found.update(str(path.relative_to(folder.parent)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


# ---------------------------------------------------------------- comparing


def differences(one: Case, before: Path, after: Path) -> list[str]:
    """What differs between the two folders of a case: names of files, and the first difference of each file."""
    old, new = (_files(folder / one.name) for folder in (before, after))
    found = [f"{name}: missing" for name in sorted(old.keys() - new.keys())]
    found += [f"{name}: new" for name in sorted(new.keys() - old.keys())]
    if one.names_only:
        return found
    for name in sorted(old.keys() & new.keys()):
        said = "" if name.endswith(DIGESTS) else _difference(old[name], new[name])
        found += [f"{name}: {said}"] if said else []
    return found


def _files(folder: Path) -> dict[str, Path]:
    """Name -> file. A task's folder goes by the content of its result: its own name holds the code's version."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = str(path.relative_to(folder))
        if task := TASK.match(name):
            name = f"{task[1]}/{_content(folder / task[1] / task[2])}/{task[3]}"
        found[name] = path
    return found


def _content(task: Path) -> str:
    """A hash of what a task made, but for the list of its files."""
    made = hashlib.sha256()
    for path in sorted(path for path in task.rglob("*") if path.is_file() and path.name != "done"):
        made.update(_blotted(path.read_bytes()).encode() if path.suffix == ".json" else path.read_bytes())
    return made.hexdigest()[:12]


def _difference(before: Path, after: Path) -> str:
    """The first difference of two files, or nothing."""
    old, new = before.read_bytes(), after.read_bytes()
    if old == new:
        return ""
    try:
        if before.suffix == ".json" or (before.suffix == ".out" and old[:1] == b"{"):
            return _unlike(_drawn_out(before, old), _drawn_out(after, new), "")
        if before.suffix == ".md":  # its table of settings is in the order of the groups
            return _unlike_lines(*("\n".join(sorted(_blotted(text).splitlines())) for text in (old, new)))
        if before.suffix in TEXT:
            return _unlike_lines(_blotted(old), _blotted(new))
    except ValueError:
        pass
    return f"{len(old)} and {len(new)} bytes that differ"


def _drawn_out(path: Path, text: bytes) -> Any:
    """The JSON of a file, without what is drawn anew for each run."""
    found, drawn = json.loads(text), DRAWN.get(path.name, frozenset())
    return {k: v for k, v in found.items() if k not in drawn} if drawn and isinstance(found, dict) else found


def _unlike(old: Any, new: Any, where: str) -> str:
    """The first place where two JSON values differ, with the measure it belongs to."""
    if isinstance(old, dict) and isinstance(new, dict):
        if "measure" in old and old.get("measure") == new.get("measure"):
            where += f"({old['measure']})"
        keys = sorted((old.keys() | new.keys()) - VOLATILE)
        if where.endswith(".settings"):
            one_side = old.keys() ^ new.keys()
            keys = [k for k in keys if k not in one_side or {**old, **new}[k] not in NOTHING_ASKED]
        return next(
            filter(None, (_unlike(old.get(k, "absent"), new.get(k, "absent"), f"{where}.{k}") for k in keys)), ""
        )
    if isinstance(old, list) and isinstance(new, list):
        inner = (_unlike(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(old, new, strict=False)))
        return next(filter(None, inner), "" if len(old) == len(new) else f"{where}: {len(old)} and {len(new)} entries")
    if isinstance(old, str) and isinstance(new, str):
        if old.startswith('{"schema"') and new.startswith('{"schema"'):
            return _unlike(json.loads(old), json.loads(new), where)
        old, new = _blotted(old.encode()), _blotted(new.encode())
    return "" if old == new and type(old) is type(new) else f"{where}: {_short(old)} | {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _blotted(text: bytes) -> str:
    """Without what a clock, a version or the length of a bar says."""
    said = text.decode("utf-8", "replace")
    for pattern, instead in WORDS:
        said = pattern.sub(instead, said)
    return said


def _unlike_lines(old: str, new: str) -> str:
    if old == new:
        return ""
    a, b = old.splitlines(), new.splitlines()
    place = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    x, y = (lines[place] if place < len(lines) else "" for lines in (a, b))
    at = next((i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), 0)
    return f"line {place + 1}: {_short(x[max(0, at - 30) : at + 60])} | {_short(y[max(0, at - 30) : at + 60])}"


# ---------------------------------------------------------------- the command


def chosen(names: Sequence[str], *, studies: bool) -> list[Case]:
    """The cases asked for, and those that they need before them."""
    known = all_cases()
    if unknown := set(names) - known.keys():
        raise SystemExit(f"no case {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    wanted = set(names) or {name for name, one in known.items() if studies or not one.slow}
    while more := {need for name in wanted for need in known[name].needs} - wanted:
        wanted |= more
    return _in_order([one for name, one in known.items() if name in wanted])


def _in_order(cases: list[Case]) -> list[Case]:
    """Each case after those that it needs."""
    done: dict[str, Case] = {}
    while len(done) < len(cases):
        ready = [one for one in cases if one.name not in done and all(need in done for need in one.needs)]
        done |= {one.name: one for one in ready}
    return list(done.values())


def compare_all(cases: list[Case], before: Tree, after: Tree | None, jobs: int) -> int:
    """Run and compare every case, or only run it; returns how many differ or did not run."""
    bad = 0
    with ThreadPoolExecutor(jobs) as pool:
        running: dict[str, Future[tuple[list[str], float]]] = {}
        for one in cases:
            running[one.name] = pool.submit(_one, one, before, after, [running[need] for need in one.needs])
        for name, future in running.items():
            found, seconds = future.result()
            bad += bool(found)
            sys.stdout.write(f"{'differs' if found else 'same   '} {name} ({seconds:.0f} s)\n")
            sys.stdout.writelines(f"        {line}\n" for line in found)
            sys.stdout.flush()
    return bad


def _one(one: Case, before: Tree, after: Tree | None, needed: list[Future[Any]]) -> tuple[list[str], float]:
    for future in needed:  # submitted earlier, so these never wait for this one
        future.result()
    start = time.monotonic()
    wrong = [f"before: {line}" for line in before.run(one)]
    if after is None:
        return wrong, time.monotonic() - start
    wrong += [f"after: {line}" for line in after.run(one)]
    return wrong + differences(one, before.folder, after.folder), time.monotonic() - start


def main() -> int:
    """Compare two trees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the old tree's src")
    parser.add_argument("--after", type=Path, help="the new tree's src; without it the old one's results are kept")
    parser.add_argument("--only", nargs="+", default=[], help="these cases, and what they need")
    parser.add_argument("--keep", type=Path, help="folder where the results of the old tree stay")
    parser.add_argument("--jobs", type=int, default=1, help="cases at once")
    parser.add_argument("--studies", action="store_true", help="also the studies and the demo, which take minutes")
    options = parser.parse_args()
    if options.after is None and options.keep is None:
        parser.error("give --after, or --keep to keep the results of the old tree alone")
    cases = chosen(options.only, studies=options.studies)
    with tempfile.TemporaryDirectory(prefix="same-bytes-") as scratch:
        kept = options.keep.absolute() if options.keep else Path(scratch) / "kept"
        before = open_tree(options.before, kept / "before", keep=True)
        after = open_tree(options.after, Path(scratch) / "after", keep=False) if options.after else None
        bad = compare_all(cases, before, after, options.jobs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(f"{bad} of {len(cases)} cases differ; {used.ru_utime + used.ru_stime:.0f} s of processor time\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
