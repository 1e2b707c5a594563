"""`--force` replaces what the same command wrote, and nothing else: every command that has the flag
is tried.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clinveil.attacks.models.leaveout.data import audit_folder
from clinveil.cli import main
from clinveil.cli.groups import COMMANDS, Group
from clinveil.releases import pipeline

SMALL = ["--set", "vectors.dim=8", "--set", "vectors.epochs=1", "--set", "workers=1"]
# What stands between the command's name and `--force`; OUT is the folder in question.
NEW_FOLDER = {
    "demo --notes-only": "-o OUT --patients 3",
    "embed": "NOTES -o OUT --dim 8 --set vectors.epochs=1 --workers 1",
    "deidentify": "FEW -o OUT --workers 1",
    "release": "NOTES -o OUT --as obfuscated --set vectors.dim=8 --set vectors.epochs=1"
    " --workers 1 --again",
}
ALREADY_THERE = {
    "deidentify --vault": "NOTES -o BESIDE --vault OUT --workers 1",
    "report": "RUN -o OUT",
    "compare": "NOTES -o OUT --label diagnosis_group",
    "attack leaveout": "NOTES -o OUT --variant exact",
    "validate": "NOTES -o OUT",
    "reidentify": "NOTES -o OUT --vault RUN --reason asked",
    "init-config": "-o OUT",
}
MINE = {
    "thesis.txt": b"years of work",
    "data/notes.parquet": b"\0\1",
    "SECRET.txt": b"mine",
    "tasks/mine": b"x",
}
MINE |= {
    "manifest.json": b"{}",
    "meta.json": b"{}",
    "vault/state.json": b"{}",
    ".clinveil.json": b"[]",
}


@pytest.fixture(scope="module", autouse=True)
def no_attacks():
    with pytest.MonkeyPatch.context() as patch:
        for measuring in ("attacked", "useful"):
            patch.setattr(pipeline, measuring, lambda *_: [])
        yield


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Notes of 60 invented patients, and a few of them."""
    folder = tmp_path_factory.mktemp("desk")
    assert (
        main(["demo", "--notes-only", "-o", str(folder / "demo"), "--patients", "60", "--quiet"])
        == 0
    )
    notes = pq.read_table(folder / "demo" / "notes.parquet")
    pq.write_table(notes.slice(0, 10), folder / "few.parquet")
    return folder


def line(desk, command, flags, out):
    """The arguments of a command line."""
    places = {"OUT": out, "BESIDE": out.parent / "beside", "NOTES": desk / "demo" / "notes.parquet"}
    places |= {"RUN": desk / "run", "FEW": desk / "few.parquet"}
    command = command.removesuffix(" --vault")
    return [*command.split(), *(str(places.get(word, word)) for word in flags.split()), "--quiet"]


def tree(folder):
    """Name -> bytes of all that is in a folder."""
    return {
        p.relative_to(folder).as_posix(): p.is_file() and p.read_bytes() for p in folder.rglob("*")
    }


def somebodys(folder):
    """A private folder of somebody's own files, some of them under names that ours have."""
    for name, data in MINE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    folder.chmod(0o700)
    return folder


def runs(arguments):
    """The exit code; a few commands have no `--quiet`."""
    loud = arguments[0] in ("report", "reidentify", "attack", "init-config")
    return main([a for a in arguments if a != "--quiet" or not loud])


def with_force():
    """Every command that has `--force`."""
    yield from _with_force(COMMANDS, "")


def _with_force(members, group):
    for name, command in members:
        if isinstance(command, Group):
            yield from _with_force(command.members, f"{group}{name} ")
        elif any("--force" in getattr(option, "opts", ()) for option in command.parser().params):
            yield f"{group}{name}"


def test_every_command_with_the_flag_is_tried():
    tried = {command.partition(" --")[0] for command in NEW_FOLDER | ALREADY_THERE}
    assert tried == set(with_force())


@pytest.mark.parametrize("command", [*NEW_FOLDER, *ALREADY_THERE])
@pytest.mark.parametrize("name", ["thesis", "thesis.csv"])
def test_a_folder_of_somebody_elses_survives(desk, tmp_path, capsys, command, name):
    if command == "report":
        (desk / "run" / "vault").mkdir(parents=True, exist_ok=True)
        (desk / "run" / "vault" / "record.json").write_text("{}")
    out = somebodys(tmp_path / name)
    before = tree(out)
    force = [] if command == "deidentify --vault" else ["--force"]
    assert runs([*line(desk, command, (NEW_FOLDER | ALREADY_THERE)[command], out), *force]) == 2
    said = capsys.readouterr().err
    assert tree(out) == before
    assert name in said.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("command", NEW_FOLDER)
def test_a_file_put_into_an_earlier_output_survives(desk, tmp_path, capsys, command):
    out = tmp_path / "out"
    arguments = line(desk, command, NEW_FOLDER[command], out)
    assert runs(arguments) in (0, 4)
    holder = next((path for path in out.iterdir() if path.is_dir()), out)
    (holder / "mine.txt").write_text("mine")
    before = tree(out)
    assert runs([*arguments, "--force"]) == 2
    assert tree(out) == before
    said = capsys.readouterr().err.splitlines()[-1]
    assert "did not write" in said and "mine" not in said
    (holder / "mine.txt").unlink()
    if command != "release":  # tests/release repeat releases
        assert runs([*arguments, "--force"]) in (0, 4)


@pytest.mark.parametrize("command", ["demo --notes-only", "deidentify"])
def test_the_output_of_another_command_survives(desk, tmp_path, command):
    out = tmp_path / "out"
    assert (
        main(["embed", str(desk / "demo" / "notes.parquet"), "-o", str(out), "--quiet", *SMALL])
        == 0
    )
    before = tree(out)
    assert runs([*line(desk, command, NEW_FOLDER[command], out), "--force"]) == 2
    assert tree(out) == before


@pytest.mark.parametrize(
    "command", [command for command in NEW_FOLDER if not command.endswith("--vault")]
)
@pytest.mark.parametrize("out", [".", "..", "/"])
def test_a_place_without_a_name_of_its_own_is_refused(
    desk, tmp_path, monkeypatch, capsys, command, out
):
    monkeypatch.chdir(tmp_path)
    arguments = [
        out if word == "." else word for word in line(desk, command, NEW_FOLDER[command], Path("."))
    ]
    assert runs([*arguments, "--force"]) == 2
    assert "OUT" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_replaced_by_a_folder(desk, tmp_path):
    (tmp_path / "out").write_text("mine")
    assert (
        main(line(desk, "demo --notes-only", "-o OUT --patients 3 --force", tmp_path / "out")) == 2
    )
    assert (tmp_path / "out").read_text() == "mine"


def test_an_audit_keeps_what_is_none_of_its_tasks(tmp_path):
    out = tmp_path / "audit"
    with audit_folder(out, {}) as store:
        (store.root / ("0" * 32)).mkdir()
    (out / "mine.txt").write_text("mine")
    with audit_folder(out, {}, force=True) as store:
        assert list(store.root.iterdir()) == []
    assert (out / "mine.txt").read_text() == "mine"
