"""Synthetic releases with differential privacy: the report, the budget in the ledger, and refusals
in one line.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from clinveil.cli import main
from clinveil.corpus import open_corpus
from clinveil.lm import Audit
from clinveil.releases import pipeline
from clinveil.releases.earlier.ledger import Ledger
from clinveil.releases.earlier.spending import Spending
from clinveil.releases.gates import audit_gate, seed_gate

COMMON = [
    f"{a}{b}"
    for a in ("fever", "pain", "cough", "rest", "heart", "lung")
    for b in "abcdefghijklmnopqrst"
]
TYPES = {"chest": ["thorax", "sternum", "pleura"], "skin": ["dermis", "rash", "itching"]}
PATIENTS = 120


def private_notes(folder, patients=PATIENTS, types=TYPES, missing=False):
    """Notes with words of their type, and 25 words that only this patient has."""
    rng = np.random.default_rng(1)
    lines = ["note_id,patient_id,type,text"]
    names = list(types)
    for i in range(patients):
        name = names[i % len(names)]
        own = [f"own{chr(97 + i % 26)}{chr(97 + i // 26)}{chr(97 + k)}" for k in range(25)]
        said = [*rng.choice(COMMON, 30), *types[name], *own]
        lines.append(f"n{i},p{i},{'' if missing and not i else name},{' '.join(said)}")
    (folder / "notes.csv").write_text("\n".join(lines) + "\n")
    return lines


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with notes, public text, and a finished private release."""
    folder = tmp_path_factory.mktemp("private")
    private_notes(folder)
    rng = np.random.default_rng(2)
    text = [" ".join(rng.choice(COMMON, 40)) + "." for _ in range(60)]
    rare = [f"A word of {name} is {word}." for name, some in TYPES.items() for word in some] * 2
    (folder / "public.txt").write_text("\n".join([*text, *rare]) + "\n")
    assert released(folder, "first") == 0
    return folder


NAME = "clinveil-ledger"  # of these tests, next to their notes


def command(
    folder,
    out,
    *more,
    epsilon="8",
    public="public.txt",
    label=("--label", "type"),
    notes="notes.csv",
):
    base = [
        "release",
        str(folder / notes),
        "-o",
        str(folder / out),
        "--as",
        "synthetic",
        *label,
        "--workers",
        "1",
        "--set",
        f"ledger={folder / NAME}",
    ]
    sets = [
        f"synthetic.epsilon={epsilon}",
        *([f"synthetic.public={folder / public}"] if public else []),
    ]
    return [*base, *(word for item in sets for word in ("--set", item)), *more]


def released(*given, **how):
    return main(command(*given, **how))


def manifest(desk, out, side="release"):
    return json.loads((desk / out / side / "manifest.json").read_text())


def test_the_notes_have_public_words_and_their_label(desk):
    corpus = open_corpus(desk / "first/release/notes.csv", label=("type",))
    rows = [row for batch in corpus.batches() for row in batch.to_pylist()]
    assert {row["type"] for row in rows} == set(TYPES) and len(
        {row["patient_id"] for row in rows}
    ) == len(rows)
    words = {
        name: " ".join(row["text"] for row in rows if row["type"] == name).replace(".", " ").split()
        for name in TYPES
    }
    public = set((desk / "public.txt").read_text().replace(".", " ").split())
    assert set(words["chest"]) | set(words["skin"]) <= public
    for name, other in (("chest", "skin"), ("skin", "chest")):
        assert sum(w in TYPES[name] for w in words[name]) > 2 * sum(
            w in TYPES[other] for w in words[name]
        )


def test_the_manifest_states_the_guarantee(desk):
    privacy = manifest(desk, "first")["privacy"]
    assert (privacy["epsilon"], privacy["unit"], privacy["releases"]) == (8.0, "patient", 1)
    assert privacy["epsilon_of_all"] == pytest.approx(8.0, abs=1e-6)
    assert privacy["guarantee"] in (desk / "first/release/report.html").read_text()
    gates = {gate["name"]: gate for gate in manifest(desk, "first")["gates"]}
    assert gates["public words only"]["passed"] and gates["audited epsilon"]["passed"]
    assert 0 < gates["audited epsilon"]["value"] < gates["audited epsilon"]["limit"] == 8.0
    for text in ("report.html", "README.md"):
        words = (desk / "first/release" / text).read_text().lower()
        assert "is anonymous" not in words and "is safe" not in words
    assert str(desk) not in (desk / "first/release/manifest.json").read_text()


def test_the_gate_on_the_audit_refuses_a_contradicted_epsilon():
    right = Audit(1_000, 300, 160, 1e-4)
    wrong = Audit(1_000, 300, 299, 1e-4)
    assert audit_gate(right, 1.0).outcome == "held" and audit_gate(wrong, 1.0).outcome == "not held"
    assert audit_gate(wrong, 8.0).outcome == "not decided", (
        "300 correct guesses cannot show an epsilon above 8"
    )


def test_two_releases_add_up_and_the_second_needs_again(desk, capsys):
    assert released(desk, "second") == 2
    assert "--again" in capsys.readouterr().err
    assert released(desk, "second", "--again") == 0
    both = manifest(desk, "second")["privacy"]
    assert both["releases"] == 2
    assert both["epsilon_of_all"] == pytest.approx(
        Spending((both["noise"],) * 2, both["delta"]).epsilon
    )
    assert 8.0 < both["epsilon_of_all"] < 16.0
    assert "Together, the private releases" in (desk / "second/release/report.html").read_text()


FEW = ("--set", "lm.model=unigram", "--set", "synthetic.count=4")
# Waits between reading the ledger and writing into it, so that runs at the same time meet there.
SLOW = """
import sys, time
from clinveil.cli.entry import main
from clinveil.releases import pipeline
from clinveil.releases.earlier.ledger import Ledger

read = Ledger.overlapping
Ledger.overlapping = lambda *given: [read(*given), time.sleep(1)][0]
sys.exit(main(sys.argv[1:]))
"""


def started(
    folder,
    out,
    *more,
    code="import sys; from clinveil.cli.entry import main; sys.exit(main(sys.argv[1:]))",
):
    """A process with the command of `released`."""
    return subprocess.Popen([sys.executable, "-c", code, *command(folder, out, *more)])


def test_a_killed_run_is_resumed_and_spends_nothing_again(desk):
    (desk / "apart").mkdir()  # away from the vaults of the other releases
    entries = Ledger(desk / "other").entries
    more = (*FEW, "--set", f"ledger={desk / 'other'}")
    killed = started(desk, "apart/killed", *more)
    while not list((desk / "other").glob("*.parquet")):
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    spent = [entry.spent for entry in entries()]
    assert len(spent) == len(spent[0]) == 1, "entered before the noise is drawn"
    assert not (desk / "apart/killed/release").exists()
    assert released(desk, "apart/elsewhere", *more) == 2, "the budget of a killed run counts"
    assert released(desk, "apart/killed", *more) == 0
    assert [entry.spent for entry in entries()] == spent
    assert manifest(desk, "apart/killed")["privacy"]["releases"] == 1


@pytest.fixture
def alone(tmp_path, desk):
    """A folder with the same notes and a ledger of its own."""
    shutil.copy(desk / "notes.csv", tmp_path)
    shutil.copy(desk / "public.txt", tmp_path)
    return tmp_path


def test_a_withdrawal_does_not_give_budget_back(alone, capsys):
    assert released(alone, "one", *FEW) == 0
    assert main(["withdraw", str(alone / "one"), "--reason", "not needed"]) == 0
    assert "stays spent" in capsys.readouterr().out
    assert released(alone, "two", *FEW) == 0  # without --again
    both = manifest(alone, "two")["privacy"]
    assert both["releases"] == 2 and both["epsilon_of_all"] > 8.5


def test_a_refused_private_run_is_no_release_but_its_budget_is_spent(alone, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "seed_gate", lambda seeds: seed_gate(("notes",)))
        assert released(alone, "one", *FEW) == 4
    (made,) = Ledger(alone / NAME).entries()
    assert made.is_withdrawn and len(made.spent) == 1
    assert released(alone, "two", *FEW) == 0
    assert manifest(alone, "two")["privacy"]["releases"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True])
def test_two_runs_at_once_spend_one_after_the_other(tmp_path, desk, again):
    """The second run is refused, or with --again counts the first."""
    shutil.copy(desk / "notes.csv", tmp_path)
    shutil.copy(desk / "public.txt", tmp_path)
    runs = [started(tmp_path, out, *FEW, *["--again"] * again, code=SLOW) for out in ("one", "two")]
    codes = [run.wait() for run in runs]
    spent = [entry.spent for entry in Ledger(tmp_path / NAME).entries()]
    if not again:
        assert sorted(codes) == [0, 2] and [len(one) for one in spent] == [1]
        return
    assert codes == [0, 0] and [len(one) for one in spent] == [1, 1]
    first, second = sorted(
        (manifest(tmp_path, out)["privacy"] for out in ("one", "two")), key=lambda p: p["releases"]
    )
    assert (first["releases"], second["releases"]) == (1, 2)
    assert first["epsilon_of_all"] == pytest.approx(8.0) and second["epsilon_of_all"] > 9.0


def test_a_test_seed_is_refused_and_not_entered(desk, capsys):
    before = len(Ledger(desk / NAME).entries())
    assert (
        released(
            desk, "seeded", "--seed", "1", "--set", "lm.model=unigram", "--set", "synthetic.count=4"
        )
        == 4
    )
    assert (
        "no test seed" in capsys.readouterr().out and len(Ledger(desk / NAME).entries()) == before
    )
    rows = (desk / "seeded/vault/refused/notes.csv").read_text().splitlines()
    assert len(rows) == 5 and len(rows[1].rpartition(",")[2].split()) == 150


@pytest.mark.parametrize(("more", "code", "message"), [
    ({"epsilon": "0"}, 2, "synthetic.epsilon must be between"),
    ({"epsilon": "-1"}, 2, "synthetic.epsilon must be between"),
    ({"public": None}, 2, "requires synthetic.public"),
    ({"label": ()}, 2, "requires --label"),
    ({"public": "absent.txt"}, 3, "absent.txt: no such file"),
    ({"sets": ["synthetic.delta=0.1"]}, 3, "synthetic.delta 0.1 exceeds 1/patients"),
    ({"sets": ["synthetic.delta=1e-320"]}, 2, "synthetic.delta must be at least 1e-100"),
    ({"sets": ["synthetic.temperature=0.5", "synthetic.exact=true", "lm.epochs=3"]}, 2,
     "lm.epochs, synthetic.temperature, synthetic.exact cannot be used with"
     " synthetic.epsilon and lm.model ngram"),
    ({"sets": ["lm.model=lstm"]}, 2, "synthetic.epsilon does not apply with lm.model lstm"),
    ({"sets": ["lm.model=pretrained"]}, 2,
        "synthetic.init and lm.model pretrained require each other"),
    ({"epsilon": "0.1"}, 3, "patients are needed"),
    ({"sets": ["channel.min_patients=9"]}, 2,
        "channel.min_patients does not apply with synthetic.epsilon"),
])  # fmt: skip
def test_refusals_are_one_line_and_write_nothing(desk, capsys, more, code, message):
    sets = [word for item in more.pop("sets", []) for word in ("--set", item)]
    assert released(desk, "never", "--again", *sets, **more) == code
    error = capsys.readouterr().err
    assert message in error and len([line for line in error.splitlines() if "rror" in line]) <= 1
    assert not (desk / "never").exists()


def test_notes_that_cannot_be_released(tmp_path, desk, capsys):
    text = (desk / "public.txt").read_text()
    lines = private_notes(tmp_path, missing=True)
    (tmp_path / "public.txt").write_text(text)
    assert released(tmp_path, "out") == 3
    assert "1 notes have no value" in capsys.readouterr().err
    private_notes(tmp_path)
    (tmp_path / "public.txt").write_text(text + lines[5].rpartition(",")[2] + "\n")
    assert released(tmp_path, "out") == 3
    assert (
        "the public text contains 20 consecutive words, or a shorter note, of 1 patients"
        in capsys.readouterr().err
    )
    private_notes(tmp_path, 300, {f"type{i}": [f"word{i}"] for i in range(14)})
    (tmp_path / "public.txt").write_text(text)
    assert released(tmp_path, "out") == 3
    error = capsys.readouterr().err
    assert "(300 patients, 14 labels)" in error and "patients are needed" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_compare_has_a_row_for_each_epsilon_or_the_reason(tmp_path, desk, capsys):
    """With 120 patients, an epsilon of 1 is impossible."""
    base = shlex.split(
        f"compare {desk / 'notes.csv'} -o {tmp_path / 'out'} --label type --kind synthetic"
    )
    assert main([*base, "--workers", "1", "--set", f"public={desk / 'absent.txt'}"]) == 3
    assert (
        "absent.txt: no such file" in capsys.readouterr().err
        and not (tmp_path / "out/runs").exists()
    )
    assert main([*base, "--workers", "1", "--set", f"public={desk / 'public.txt'}"]) == 0
    table = next((tmp_path / "out").rglob("table.md")).read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    names = [row[0].removeprefix("| ").partition(" ")[0].partition("<")[0] for row in rows]
    assert names == ["synthetic", "epsilon-8", "epsilon-3", "epsilon-1"]
    verdicts = [row[1] for row in rows]
    assert all("leave to the public" in verdict for verdict in verdicts[:3])
    (letter,) = re.findall(r"^– \((\w)\)$", verdicts[3])
    assert re.search(rf"- \({letter}\) epsilon 1, .*about 300 patients are needed", table)
    assert "about 300 patients are needed" in capsys.readouterr().out
