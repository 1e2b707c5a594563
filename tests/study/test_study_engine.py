"""The engine of studies: tasks are named by their fields, plans follow them, findings are found by
their details.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from clinveil.core.finding import Finding
from clinveil.scale import serial
from clinveil.scale.tasks import Store, name_of
from clinveil.study.engine import (
    Bench,
    CommonSettings,
    Results,
    Task,
    choices,
    findings_of,
    found,
    stages,
)
from clinveil.study.inputs import File
from clinveil.study.tables import Column, Spec
from clinveil.vectors.settings import VectorSettings


@dataclass(frozen=True)
class First(Task):
    """Writes its number."""

    number: int
    file: File
    place: str = field(default="", compare=False)

    stage = "first"
    template = "the number {number}"

    def __call__(self, folder, store):
        return {"number": self.number}


@dataclass(frozen=True)
class Second(Task):
    """Adds the numbers of others."""

    of: tuple[First, ...]
    how: VectorSettings

    stage = "second"
    template = "a sum that begins with {of[0].number}"

    def __call__(self, folder, store):
        return {"sum": sum(store.result(one)["number"] for one in self.of)}


def file_of(folder, name="a.txt", text="one"):
    (folder / name).write_text(text)
    return File.of(folder / name)


def test_a_task_is_named_by_its_fields_and_a_file_by_what_it_holds(tmp_path):
    first = First(1, file_of(tmp_path))
    assert first.identity() == {"number": 1, "file": {"digest": first.file.digest}}
    same = First(1, file_of(tmp_path, "b.txt"), place="elsewhere")
    assert (same, name_of(same)) == (first, name_of(first))
    assert name_of(First(1, file_of(tmp_path, "c.txt", "two"))) != name_of(first)
    second = Second((first,), VectorSettings())
    assert second.identity()["of"] == [name_of(first)]
    assert name_of(replace(second, how=VectorSettings(dim=50))) != name_of(second)


def test_a_path_names_no_task(tmp_path):
    with pytest.raises(TypeError, match="File"):
        Second((tmp_path,), VectorSettings()).identity()  # type: ignore[arg-type]


def test_tasks_run_after_what_they_need(tmp_path):
    ones = tuple(First(number, file_of(tmp_path)) for number in (1, 2))
    both = Second(ones, VectorSettings(epochs=2))
    wanted = (both, Second(ones[:1], VectorSettings(epochs=3)), both)
    assert {stage: len(tasks) for stage, tasks in stages(wanted).items()} == {
        "first": 2,
        "second": 2,
    }
    store = Store(tmp_path / "tasks")
    said = []
    Bench(store, serial, said.append).do(wanted)
    assert said == [
        *("first: 2 of 2 tasks to do", "second: 2 of 2 tasks to do"),
        *("first 1 of 2: the number 1", "first 2 of 2: the number 2"),
        *(f"second {n} of 2: a sum that begins with 1" for n in (1, 2)),
    ]
    assert store.result(both) == {"sum": 3}
    Bench(store, serial, said.append).do(wanted)
    assert len(said) == 6


def results(*rows):
    return Results(
        CommonSettings(),
        tuple(Finding("attack.x", value, 9, detail=detail) for value, detail in rows),
    )


def test_findings_are_found_by_measure_and_details():
    made = results(
        (0.1, {"model": "a"}), (0.2, {"model": "b"}), (0.3, {"model": "b", "series": "s"})
    )
    assert [f.value for f in made.all("attack.x", model="b")] == [0.2, 0.3]
    assert [f.value for f in made.all("attack.x", model="b", series="")] == [0.2]
    assert made.of("attack.x", model="c") is made.of("attack.y") is None
    back = findings_of(found(made.findings, corpus="c"))
    assert [(f.value, f.detail["corpus"]) for f in back] == [(0.1, "c"), (0.2, "c"), (0.3, "c")]


def test_a_table_is_its_rows_by_its_columns():
    made = results((0.1, {"model": "a"}), (0.2, {"model": "b", "series": "s"}))
    columns = (
        Column("x", "attack.x", "value", 1),
        Column("s", "attack.x", "value", 2, {"series": "s"}),
    )
    spec = Spec("t", "T", "Which of {n}?", ("model",), columns, ("{n} in all",))
    table = spec.table(((m, *spec.cells(made, model=m)) for m in "ab"), n=2)
    assert table.columns == ("model", "x", "s")
    assert table.rows == (("a", "0.1", "–"), ("b", "0.2", "0.20"))
    assert (table.asks, table.remarks) == ("Which of 2?", ("2 in all",))
    assert table.markdown().splitlines()[4:] == [
        *(
            "| model | x | s |",
            "| --- | --- | --- |",
            "| a | 0.1 | – |",
            "| b | 0.2 | 0.20 |",
            "",
            "- 2 in all",
        ),
    ]


def test_the_page_tells_no_path_and_no_column():
    class Own(CommonSettings):
        """A study's."""

        model: tuple[str, ...] = ("a", "b")
        pairs: tuple[Path, ...] = (Path("secret.csv"),)
        k: int | None = None

    told = Own(text="column").for_page()
    assert told == {"size": "small", "seed": "1", "model": "a, b", "k": "default"}


def test_choices_keep_the_known_order():
    assert choices(("b", "a"), ("a", "b", "c")) == ("a", "b")
    for values in ((), ("d",)):
        with pytest.raises(ValueError, match="one or several of a, b, c"):
            choices(values, ("a", "b", "c"))
