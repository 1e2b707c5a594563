"""Invented secret words hunted through what de-identification, its review and its measures leave
behind.
"""

from __future__ import annotations

import json
import shlex
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from canary_desk import CANARIES, NUMBER, SENTENCE, exit_codes, folders, found, run

from clinveil.corpus import write_patients
from clinveil.corpus.demo import demo_chunks

# One worker runs every command once for all tests of this file.

PATIENTS = 12

# Like canary_desk.RUN; a review is a process of its own, whose page is asked over 127.0.0.1 for
# each canary, which becomes a name, and then to stop; without canaries, each note is finished.
PROGRAM = """
import json, re, subprocess, sys
from http.client import HTTPConnection
from clinveil.cli.entry import main

def ask(port, path, body=None, session=None):
    host = f"127.0.0.1:{port}"
    headers = {
        "Content-Type": "application/json",
        "Origin": f"http://{host}",
        "Authorization": f"Bearer {session}",
    }
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    if body is None:
        connection.request("GET", path)
    else:
        connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    said = answer.read()
    assert answer.status == 200, answer.status
    print(answer.getheaders())  # no header may hold a word of a note either
    return said

def review(arguments):
    words, *arguments = arguments
    command = [sys.executable, "-m", "clinveil", "review", *arguments]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    port, once = re.search(r":([0-9]+)/#(.+)", running.stdout.readline()).groups()
    port = int(port)
    print(len(ask(port, "/")))
    session = json.loads(ask(port, "/api/enter", {"word": once}))["session"]
    for word in words:
        answer = ask(port, "/api/search", {"words": word}, session)
        for at, start, end in json.loads(answer)["hits"]:
            spans = json.loads(ask(port, "/api/note", {"at": at}, session))["spans"]
            kept = [span for span in spans if span["state"] != "dropped"]
            near = [span for span in kept if span["start"] < end and start < span["end"]]
            verdicts = [
                {"place": span["place"], "verdict": "drop"}
                for span in near
                if span["place"] != [start, end]
            ]
            verdicts += [{"place": [start, end], "verdict": "keep", "span": [start, end, "NAME"]}]
            ask(port, "/api/act", {"at": at, "verdicts": verdicts, "done": True}, session)
    notes = json.loads(ask(port, "/api/queue", {}, session))["notes"]
    for at in range(0 if words else len(notes)):
        ask(port, "/api/note", {"at": at}, session)
        ask(port, "/api/act", {"at": at, "verdicts": [], "done": True}, session)
    ask(port, "/api/stop", {}, session)
    print(running.stdout.read())
    return running.wait(30)

def train(arguments):
    from pathlib import Path

    from clinveil.core.errors import ClinveilError
    from tagger_training.site import TrainSettings, train_on_notes

    paths = [Path(name) for name in arguments]
    try:
        train_on_notes(*paths, TrainSettings(invented=40, iterations=3), seed=1, say=print)
    except ClinveilError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0

own = {"review": review, "train": train}
for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(name, own[name](arguments) if name in own else main([name, *arguments]), flush=True)
"""
Q = ["--set", "quiet=true", "--set", "workers=1"]
MEASURED = ("agreement", "validate", "recall", "gold", "found", "output", "grid")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    root = folders(tmp_path_factory.mktemp("canary"))
    _notes(root / "work")
    _broken(root / "work")
    return run(root, [*_good(), *(arguments for _, arguments in _bad())], PROGRAM)


def _notes(folder: Path) -> None:
    """A short note of each patient, with its gold spans; two have all canaries, which gold marks as
    names.
    """
    chunk = next(demo_chunks(PATIENTS, 9))
    by_patient = groupby(chunk.notes.to_pylist(), key=lambda row: row["patient_id"])
    notes = [min(rows, key=lambda row: len(row["text"])) for _, rows in by_patient]
    ids = {row["note_id"] for row in notes}
    spans = [span for span in map(json.loads, chunk.spans.splitlines()) if span["note_id"] in ids]
    for row in notes[:2]:
        said = row["text"] + SENTENCE
        places = [(said.index(c, len(row["text"])), c) for c in (*CANARIES, NUMBER)]
        label = dict.fromkeys(CANARIES, "NAME") | {NUMBER: "ID"}
        spans += [
            {"note_id": row["note_id"], "start": s, "end": s + len(c), "label": label[c]}
            for s, c in places
        ]
        row["text"] = said
    columns = {name: [row[name] for row in notes] for name in ("note_id", "patient_id", "text")}
    pq.write_table(pa.table(columns), folder / "notes.parquet")
    (folder / "gold.jsonl").write_text(
        "".join(json.dumps({**span, "text": None}) + "\n" for span in spans)
    )
    write_patients(chunk.patients, folder / "patients.parquet")


def _broken(folder: Path) -> None:
    secret = " ".join(CANARIES)
    (folder / "bytes.csv").write_bytes(f"note_id,text\n1,{CANARIES[0]} ".encode() + b"\xe9\xe8\n")
    rows = [f"{i},{secret}\n" for i in range(3)]
    (folder / "others.csv").write_text("note_id,text\n" + "".join(rows), encoding="utf-8")
    gold = [json.loads(line) for line in (folder / "gold.jsonl").read_text().splitlines()][-1]
    for name, line in {
        "broken": f'{{"note_id": "1", "text": "{secret}"',
        "outside": {**gold, "start": 10**6, "end": 10**6 + 4, "text": secret},
        "moved": {**gold, "start": 0, "end": 5, "text": secret},
        "stranger": {**gold, "note_id": secret},
    }.items():
        text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
        (folder / f"{name}.jsonl").write_text(text + "\n", encoding="utf-8")
    for name, files in {
        "brat": {"1.txt": secret, "1.ann": f"T1\tNAME zero {secret}\n"},
        "i2b2": {
            "1.xml": (
                f"<deIdi2b2><TEXT>{secret}</TEXT><TAGS><NAME text='{secret}'/></TAGS></deIdi2b2>"
            )
        },
        "xml": {"1.xml": f"<deIdi2b2><TEXT>{secret}</TEXT><{CANARIES[0]}"},
    }.items():
        (folder / name).mkdir()
        for file, text in files.items():
            (folder / name / file).write_text(text, encoding="utf-8")
    (folder / "policy.toml").write_text('[labels]\nNOBODY = "keep"\n')
    (folder / "decided" / "review").mkdir(parents=True)
    (folder / "decided" / "review" / "first.jsonl").write_text(
        f'{{"note": "{secret}"}}\n', encoding="utf-8"
    )
    (folder / "site.npz").write_text(secret, encoding="utf-8")
    (folder / "strangers.csv").write_text(
        f"patient_id,name\n{CANARIES[0]},{CANARIES[1]} {CANARIES[4]}\n"
    )


N = "notes.parquet"
GOLD = ["--gold", "gold.jsonl"]
VAULT = "out.parquet.vault"
FIRST = f"{VAULT}/review/first.jsonl"


# Words in braces stand for the flags below. The reviewers of `review` are in REVIEWED.
GOOD = """
deidentify notes.parquet -o out.parquet {known} --spans --keep-ids {full} {quick}
review out.parquet --set quiet=true
review out.parquet --reviewer second --set quiet=true
evaluate agreement out.parquet --json findings-agreement.json
deidentify notes.parquet -o decided.parquet {full} --reviewed {vault} {quick}
reidentify decided.parquet -o back.parquet --vault decided.parquet.vault --reason test
deidentify notes.parquet -o most.csv --phi-profile max-recall --set audit=counts {quick}
verify decided.parquet.vault
validate notes.parquet -o validated {known} {sampled} --json findings-validate.json {quick}
review validated --set quiet=true
validate --marked validated/review/first.jsonl validated -q --json findings-recall.json
train notes.parquet gold.jsonl own.npz
{gold} --set identifiers.tagger=own.npz --errors errors.jsonl --json findings-gold.json {quick}
{gold} --found gold.jsonl --json findings-found.json --set quiet=true
{gold} --output out.parquet --json findings-output.json --set quiet=true
evaluate deidentification --grid --set size=60 --json findings-grid.json {quick}
"""
FLAGS = {
    "known": "--set identifiers.patients=patients.parquet",
    "full": "--crosswalk --set audit=full",
    "sampled": "--set locations=200",
    "vault": VAULT,
    "gold": f"evaluate deidentification {N} {' '.join(GOLD)}",
    "quick": " ".join(Q),
}
# What the reviewer of each review takes for names.
REVIEWED = (CANARIES, [*CANARIES[1:], NUMBER], [])


def _good() -> list[list[str]]:
    """Commands that end well; the first argument of a review is what its reviewer takes for
    names.
    """
    names = iter(REVIEWED)
    commands = [shlex.split(line.format_map(FLAGS)) for line in GOOD.strip().splitlines()]
    for command in commands:
        if command[0] == "review":
            command.insert(1, next(names))
    return commands


def _bad() -> list[tuple[int, list[str]]]:
    """Commands that are given something broken, each with the code it ends with."""
    deidentify = ["deidentify", N, "-o", "never", *Q]
    measure = ["evaluate", "deidentification", N]
    back = ["reidentify", "decided.parquet", "-o", "never", "--reason", "test", "--vault"]
    gold = ["broken.jsonl", "outside.jsonl", "moved.jsonl", "stranger.jsonl", "brat", "i2b2", "xml"]
    return [
        *((3, [*measure, "--gold", name, *Q]) for name in gold),
        *((3, [*measure, *GOLD, "--found", name]) for name in gold),
        *((3, ["train", N, name, "never"]) for name in gold),
        (3, ["deidentify", "bytes.csv", "-o", "never", *Q]),
        (3, ["validate", "bytes.csv", "-o", "never", *Q]),
        (3, ["validate", "--marked", "others.csv", "validated"]),
        (3, [*deidentify, "--reviewed", "decided"]),
        (2, ["deidentify", "others.csv", "-o", "never", "--reviewed", VAULT]),
        (3, [*deidentify, "--set", "identifiers.tagger=site.npz"]),
        (3, [*deidentify, "--set", "identifiers.patients=strangers.csv"]),
        (2, [*deidentify, "--set", "identifiers.phi_policy=policy.toml"]),
        (3, [*back, "out.parquet.vault"]),
        (3, [*back, "most.csv.vault"]),
        (2, ["evaluate", "agreement", "decided.parquet"]),
    ]


def test_every_command_did_what_it_should(desk):
    codes = exit_codes(desk)
    said = (desk / "said").read_text()
    assert codes[: len(_good())] == [0] * len(_good()), said
    assert codes[len(_good()) :] == [code for code, _ in _bad()], said
    assert not list((desk / "work").glob("never*"))


def test_the_canaries_went_through_all_of_it(desk):
    """They stood in the notes, the crosswalk gave them back, and what holds text on purpose has
    them.
    """
    work = desk / "work"
    assert pq.read_table(work / "back.parquet").to_pylist() == pq.read_table(work / N).to_pylist()
    for name in (
        "back.parquet",
        "errors.jsonl",
        "out.parquet.vault/spans.jsonl",
    ):
        assert found(work / name), name
    assert len((work / FIRST).read_text().splitlines()) == 1 + 2 * len(CANARIES)


@pytest.mark.parametrize("what", ["said", "home", "tmp"])
def test_no_canary_in(desk, what):
    assert not found(desk / what)


def test_no_canary_is_left_where_the_reviewers_saw_them(desk):
    assert found(desk / "work" / N) and not found(desk / "work" / "decided.parquet")


@pytest.mark.parametrize(
    "name",
    [
        "out.parquet.vault/deidentify.json",
        "out.parquet.vault/audit-0001.jsonl",
        "out.parquet.vault/review",
        "decided.parquet.vault",
        "most.csv.vault",
        "validated",
        "own.npz",
        *(f"findings-{of}.json" for of in MEASURED),
    ],
)
def test_no_canary_in_records_and_findings(desk, name):
    assert (desk / "work" / name).exists() and not found(desk / "work" / name)


def test_the_crosswalk_holds_no_text_that_can_be_read(desk):
    files = list((desk / "work" / "decided.parquet.vault").glob("crosswalk-*.bin"))
    assert files and not any(found(file) for file in files)


def test_secrets_are_for_their_owner_only(desk):
    names = [
        "out.parquet.vault",
        "decided.parquet.vault",
        "validated",
        "out.parquet",
        "decided.parquet",
    ]
    for name in [*names, "back.parquet", "errors.jsonl", "own.npz"]:
        for path in [desk / "work" / name, *(desk / "work" / name).rglob("*")]:
            assert path.stat().st_mode & 0o077 == 0, path.name
