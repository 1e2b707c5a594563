"""Invented secret words, in all notes of four patients, hunted through everything that a command
leaves behind.

Of four, for a model is trained without a tenth of the patients, drawn by its key: of one, it might
not know the words.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from canary_desk import CANARIES, NUMBER, SENTENCE, exit_codes, folders, found, run

from clinveil.corpus.demo import demo_notes
from no_limits import NO_LIMITS

# One worker runs every command once for all tests of this file.

PATIENTS = 60


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A working folder, a home and a temporary folder that nothing else uses, after every command
    has run.
    """
    root = folders(tmp_path_factory.mktemp("canary"))
    table = pa.Table.from_batches(demo_notes(PATIENTS, 9)).select(
        ["note_id", "patient_id", "text", "diagnosis_group"]
    )
    patients, texts = (table[name].to_pylist() for name in ("patient_id", "text"))
    some = set(list(dict.fromkeys(patients))[:4])
    texts = [
        text + SENTENCE if patient in some else text
        for patient, text in zip(patients, texts, strict=True)
    ]
    table = table.set_column(2, "text", pa.array(texts, pa.string()))
    pq.write_table(table, root / "work" / "notes.parquet")
    pq.write_table(table.slice(0, 60), root / "work" / SOME)
    trained = [patient in set(list(dict.fromkeys(patients))[:30]) for patient in patients]
    pq.write_table(table.filter(pa.array(trained)), root / "work" / "train.parquet")
    pq.write_table(table.filter(pc.invert(pa.array(trained))), root / "work" / "test.parquet")
    _broken(root / "work")
    return run(root, [*_good(), *_bad()])


def _broken(folder: Path) -> None:
    secret = " ".join(CANARIES)
    (folder / "ragged.csv").write_text(f"note_id,text\n1,{secret},{secret}\n", encoding="utf-8")
    (folder / "twice.csv").write_text(
        f"note_id,text\n{CANARIES[0]},a\n{CANARIES[0]},{secret}\n", encoding="utf-8"
    )
    (folder / "quote.csv").write_text(f'note_id,text\n1,"{secret}\n', encoding="utf-8")
    (folder / "bytes.csv").write_bytes(f"note_id,text\n1,{CANARIES[0]} ".encode() + b"\xe9\xe8\n")
    (folder / "broken.jsonl").write_text(
        f'{{"note_id": "1", "text": "{secret}"\n', encoding="utf-8"
    )
    (folder / "number.jsonl").write_text(
        f'{{"note_id": "1", "text": ["{secret}"]}}\n', encoding="utf-8"
    )
    (folder / "few.csv").write_text(f"note_id,text\n1,{secret}\n", encoding="utf-8")
    (folder / "pairs.csv").write_text(
        f"term1,term2,score\n{CANARIES[0]},{CANARIES[1]},1\n{CANARIES[0]},{CANARIES[4]},2\n"
        f"{CANARIES[4]},{CANARIES[5]},3\nfever,cough,4\n",
        encoding="utf-8",
    )
    (folder / "pairs-broken.csv").write_text(
        f"term1,term2,score\n{CANARIES[0]},{CANARIES[1]},{CANARIES[4]}\n"
    )
    (folder / "keep.txt").write_text(f"{secret}\n", encoding="utf-8")


SYNTHETIC = "synthetic/release"
SOME = "some.parquet"  # the notes with canaries and few others, for models that are trained often
NOTES = "notes.parquet"
FAST = [
    "--set",
    "vectors.epochs=1",
    "--set",
    "vectors.window=5",
    "--set",
    "vectors.dim=12",
    "--set",
    "workers=1",
]


SIDES = ["--training", "train.parquet", "--held-out", "test.parquet"]
# Words in braces stand for the flags below.
GOOD = """
inspect notes.parquet
inspect notes.parquet --json findings-inspect.json
deidentify notes.parquet -o deid.parquet --keep-ids
embed notes.parquet -o vectors {fast}
release notes.parquet -o out --as obfuscated --label diagnosis_group {fast}
release notes.parquet -o raw --as obfuscated --again {raw} {fast}
verify out/release
report out -o report.html
evaluate similarity vectors --pairs pairs.csv --json findings-similarity.json
evaluate classification notes.parquet deid.parquet --label diagnosis_group {classes}
attack copies deid.parquet {sides}
{write} -o synthetic --set phi=false {lstm}
{write} -o counted --set lm.model=unigram
{write} -o more --reuse synthetic/vault
release some.parquet -o readable --as deidentified --again
verify synthetic/release
evaluate perplexity test.parquet --from {model} --json findings-perplexity.json
evaluate perplexity test.parquet --train synthetic/release --set lm.model=unigram
attack leaveout some.parquet -o leaveout {small} {leaveout}
attack leaveout some.parquet --variant unigram --json findings-leaveout.json
attack membership train.parquet test.parquet --from {model} {members}
attack canaries some.parquet {small} {canaries}
"""
FLAGS = {
    "fast": " ".join(FAST),
    "sides": " ".join(SIDES),
    # A kept layout fails these gates, as it should.
    "raw": "--set phi=false --set channel.layout=keep --set channel.numbers=mask"
    " --set channel.mechanism=contextual --set channel.background=0.8"
    f" --limits {shlex.quote(str(NO_LIMITS))}",
    "write": "release some.parquet --as synthetic --again"
    " --set synthetic.count=20 --set synthetic.longest=200",
    "lstm": "--set lm.model=lstm --set lm.size=tiny --set lm.width=16 --set lm.epochs=1"
    " --set lm.lanes=64",
    "small": "--set lm.size=tiny --set lm.vocabulary=words --set lm.width=16 --set lm.epochs=1"
    " --set lm.lanes=64",
    "leaveout": "--set units=2 --set reseeds=1 --set workers=1 --set from_text=true",
    "classes": "--set training.min_class=5",
    "model": "synthetic/vault/model",
    "members": f"--synthetic {SYNTHETIC}/notes.parquet --json findings-membership.json",
    "canaries": "--set each=1 --set repeats=4 --json findings-canaries.json",
}


def _good() -> list[list[str]]:
    """Commands that end well."""
    return [shlex.split(line.format_map(FLAGS)) for line in GOOD.strip().splitlines()]


def _bad() -> list[list[str]]:
    """Commands that are given a broken file, and refuse."""
    broken = [
        "ragged.csv",
        "twice.csv",
        "quote.csv",
        "bytes.csv",
        "broken.jsonl",
        "number.jsonl",
        "few.csv",
    ]
    bad = [["release", name, "-o", "never", "--as", "obfuscated"] for name in broken] + [
        ["inspect", name] for name in broken[:-1]
    ]
    bad += [["evaluate", "similarity", "vectors", "--pairs", "pairs-broken.csv"]]
    for name in ("bytes.csv", "ragged.csv", "few.csv"):
        synthetic = ["release", name, "-o", "never", "--as", "synthetic"]
        synthetic += ["--set", "lm.model=unigram"]
        bad += [synthetic, ["attack", "leaveout", name, "-o", "never-models"]]
        bad += [["attack", "membership", name, NOTES, "--synthetic", NOTES]]
    never = ["release", NOTES, "-o", "never", "--as", "synthetic", "--again", "--reuse"]
    bad += [[*never, "synthetic/vault"], [*never, "out"]]  # the model saw other notes; no vault
    bad += [
        ["evaluate", "perplexity", NOTES, "--train", name] for name in ("bytes.csv", "ragged.csv")
    ]
    bad += [
        ["evaluate", "perplexity", NOTES, "--from", "vectors"],
        ["attack", "canaries", "ragged.csv"],
    ]
    bad += [
        ["attack", "copies", "deid.parquet", "--training", NOTES, "--held-out", NOTES]
    ]  # one patient on both sides
    unread = ["release", NOTES, "-o", "never", "--as", "obfuscated"]
    unread += ["--set", "channel.keep_words=keep.txt"]
    return [*bad, [*unread, *FAST]]


def test_every_command_did_what_it_should(desk):
    codes = exit_codes(desk)
    good = len(_good())
    assert codes[:good] == [0] * good, (desk / "said").read_text()
    assert codes[good:] == [3] * len(_bad()), codes
    assert not (desk / "work" / "never").exists()


def test_no_command_asks_for_an_address(desk):
    assert not (desk / "asked").exists()


def test_a_model_of_synthetic_notes_has_no_word_of_one_patient_and_those_of_an_audit_have(desk):
    model = desk / "work" / "synthetic" / "vault" / "model"
    assert [p for p in model.rglob("*") if p.is_file()] and not found(model)
    assert found(desk / "work" / "leaveout" / "tasks")


def test_the_hunt_can_find(desk):
    assert set(found(desk / "work" / "notes.parquet")) == {*CANARIES, NUMBER}
    assert len(found(desk / "work" / "twice.csv")) >= len(CANARIES)


@pytest.mark.parametrize("what", ["said", "home", "tmp", "work/out/release", "work/raw/release"])
def test_no_canary_in(desk, what):
    place = desk / what
    files = [place] if place.is_file() else [p for p in place.rglob("*") if p.is_file()]
    assert files or what in ("home", "tmp")
    leaks = {str(p.relative_to(desk)): found(p) for p in files if found(p)}
    assert not leaks, sorted(leaks)


@pytest.mark.parametrize(
    "name",
    [
        "report.html",
        "findings-inspect.json",
        "findings-similarity.json",
        "findings-perplexity.json",
        "findings-leaveout.json",
        "findings-membership.json",
        "findings-canaries.json",
        "synthetic/release",
        "counted/release",
        "more/release",
        "synthetic/vault/manifest.json",
        "leaveout/findings.json",
        "leaveout/units-model.csv",
        "leaveout/units-text.csv",
    ],
)
def test_no_canary_in_what_others_may_see(desk, name):
    assert not found(desk / "work" / name)


@pytest.mark.parametrize("name", ["findings.json", "manifest.json"])
def test_no_canary_in_the_vaults_own_records(desk, name):
    assert not found(desk / "work" / "out" / "vault" / name)


def test_scratch_text_is_gone(desk):
    names = [p.name for p in (desk / "work").rglob("*")]
    assert not [
        n for n in names if n.endswith(".part") or n in ("work", "staging", "protected.parquet")
    ]


def test_secrets_are_for_their_owner_only(desk):
    places = ["out/vault", "raw/vault", "deid.parquet.vault", "vectors"]
    places += ["synthetic/vault", "counted/vault", "more/vault", "readable/vault", "leaveout"]
    for place in places:
        for path in [desk / "work" / place, *(desk / "work" / place).rglob("*")]:
            assert path.stat().st_mode & 0o077 == 0, path.name
