"""Run the examples of `docs/large-data.md`."""

import re
import shlex
from pathlib import Path

from clinveil.cli import main
from clinveil.corpus import open_corpus, rows

PAGE = (Path(__file__).parents[2] / "docs" / "large-data.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_runs_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ran = 0
    for language, body in BLOCK.findall(PAGE):
        if language == "python":
            exec(compile(body, "large-data.md", "exec"), {})
        for line in body.splitlines() if language == "console" else ():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            assert program == "clinveil"
            assert main(arguments) == 0, (line, capsys.readouterr().err)
            ran += 1
    assert ran == 5
    assert len(list(rows(open_corpus("clean.parquet")))) == 5
    assert len(list(rows(open_corpus("some.csv")))) == 3
    assert "Miller" not in Path("some.csv").read_text()


def test_messages_that_the_page_explains_are_those_of_the_code():
    source = "".join(
        path.read_text(encoding="utf-8")
        for path in Path(main.__code__.co_filename).parents[1].rglob("*.py")
    )
    for said in (
        "the bucket does not exist",
        "the store denied access",
        "the store cannot be reached",
    ):
        assert said in PAGE
        assert f'"{said}"' in source
