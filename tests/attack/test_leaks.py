"""Attacks on surrogates: leaks that lists or places give away are found, leaks that nothing tells are not."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

from clinveil.attacks.attack import Context, attacks
from clinveil.attacks.text import _leaks
from clinveil.cli.main import main
from clinveil.core.finding import read_findings
from clinveil.corpus.corpus import memory_corpus
from clinveil.corpus.people import Patient, write_patients
from clinveil.corpus.write import write_corpus
from clinveil.lexicons.names import surnames
from clinveil.phi.finder import Finder

PLACES = (
    *("Dr. {} saw the patient today.", "Seen by Dr. {} in clinic.", "The wife of Mr. {} called.", "Thank you, Dr. {}."),
    "Mr. {} reports no pain.",
)
POOL = ("Nelson", "Walker", "Cooper", "Foster", "Barnes", "Fisher", "Hughes", "Sanders", "Porter", "Hunter")
REAL = ("Vexmirov", "Zoglurian", "Quondraz", "Yttervik", "Oxvandil", "Jhurgovic", "Wyzmanek", "Tkalquist")


@dataclass(frozen=True)
class Listed:
    """A detector that finds a name behind a title, if it stands in a list."""

    names: tuple[str, ...]
    name: str = "listed"
    labels: frozenset[str] = frozenset({"NAME"})
    examples: tuple[str, ...] = ()

    def find(self, note):
        for match in re.finditer(rf"(?<=r\. )(?:{'|'.join(self.names)})\b", note.text):
            yield note.span(*match.span(), "NAME", self.name)


@pytest.fixture
def listed(monkeypatch):
    """The de-identifier of the attacker finds names of the pool only."""
    monkeypatch.setattr(_leaks, "engine", lambda: Finder([Listed(POOL)]))


def release(real, patients=60, leaks=12, seed=1, lines=5):
    """Notes with surrogates, in which the names of some patients were missed; and the known patients."""
    rng = np.random.default_rng(seed)
    notes, known = [], {}
    for i in range(patients):
        pid, own = f"p{i}", real[i % len(real)]
        known[pid] = Patient(pid, ("Xx", own))
        surrogate = POOL[int(rng.integers(len(POOL)))]
        text = [PLACES[int(rng.integers(len(PLACES)))].format(surrogate) for _ in range(lines)]
        text += ["He takes Zokrinol daily.", "No fever and no chills."]
        if i < leaks:
            text[0] = PLACES[int(rng.integers(len(PLACES)))].format(own)
        notes.append((f"n{i}", pid, "\n".join(text)))
    return Context(released=memory_corpus(notes), known=known)


def run(name, context, **settings):
    attack = attacks.get(name).model_validate(settings)
    return {f.measure.rpartition("_")[2]: f for f in attack(context, np.random.default_rng(3))}


@pytest.mark.parametrize("name", ["parrot", "pool-difference"])
def test_leaks_outside_the_pool_are_found(name, listed):
    found = run(name, release(REAL))
    assert found["recall"].value >= 0.8 > 3 * found["recall"].chance and found["recall"].n == 12
    assert found["precision"].value > 2 * found["precision"].chance
    assert found["recall"].control >= 0.8 and found["recall"].control_kind == "positive"
    assert found["recall"].low <= found["recall"].value <= found["recall"].high


def test_the_lists_tell_nothing_of_a_leak_that_stands_in_them():
    real = tuple(name.capitalize() for name in list(surnames())[400:408])
    found = run("pool-difference", release(real))
    assert found["recall"].value == 0.0 and found["recall"].n == 12 and found["recall"].control == 1.0


def test_a_parrot_tells_nothing_of_a_leak_that_the_engine_finds_again(listed):
    found = run("parrot", release(POOL[:1] * 8))  # left on purpose, and found again
    assert found["recall"].value == 0.0 and found["recall"].n > 0


@pytest.mark.parametrize("name", ["parrot", "pool-difference"])
def test_nothing_leaked_is_nothing_to_recall(name, listed):
    found = run(name, release(REAL, leaks=0))
    assert found["recall"].value is None and "no known patient's name" in found["recall"].detail["why"]
    assert found["precision"].value in (None, 0.0)


def test_terms_of_many_patients_are_no_names(listed):
    truth = _leaks.released(release(REAL), 1000, np.random.default_rng(1))
    forms = {form for _, form in _leaks.seen_as_names(truth.notes)}
    assert "zokrinol" not in forms and "vexmirov" in forms and "nelson" in forms
    assert {form for _, form in truth.leaked} == {name.lower() for name in REAL}


def test_released_patients_are_known_by_the_crosswalk(listed):
    context = release(REAL)
    other = {f"p{i}": f"p{i + 1}" for i in range(60)}
    moved = Context(released=context.released, known=context.known, patients=other)
    assert len(_leaks.released(moved, 1000, np.random.default_rng(1)).leaked) == 0


def test_some_patients_of_many(listed):
    found = run("pool-difference", release(REAL), sampled_patients=10)
    assert found["precision"].detail["patients"] == 10


def test_the_command_runs_both(tmp_path, capsys):
    context = release(REAL, patients=30, leaks=6)
    write_corpus(context.released.batches(), tmp_path / "notes.parquet", context.released.columns, ".parquet")
    write_patients(context.known.values(), tmp_path / "patients.parquet")
    told = ["--patients", str(tmp_path / "patients.parquet"), "--json", str(tmp_path / "found.json"), "--seed", "1"]
    assert main(["attack", "leaks", str(tmp_path / "notes.parquet"), *told]) == 0
    measures = [f.measure for f in read_findings(tmp_path / "found.json")]
    assert measures == [f"attack.{a}_{b}" for a in ("pool_difference", "parrot") for b in ("precision", "recall")]
    assert main(["attack", "leaks", str(tmp_path / "notes.parquet"), *told, "--attack", "nothing"]) == 2
    said = capsys.readouterr().err
    assert not any(name in said for name in REAL)
