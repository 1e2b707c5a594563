"""`clinveil study`: the group of studies; one file a paper, imported when it is called."""

from __future__ import annotations

import typer

from clinveil.cli.lazy import lazy_group

STUDIES = {
    "jamia-2020": "Paper A: what obfuscation costs on word similarity and classification; its tables on your notes.",
    "jmir-2020": "Paper B: what word vectors trained on notes give away; its Tables 1 to 4 on your notes.",
    "clinicalnlp-2019": "Paper C: synthetic notes by dropout, their privacy with its floors, audits and utility.",
}


def _file_of(name: str) -> str:
    return f"clinveil.cli.study.{name.replace('-', '_')}"


app = typer.Typer(
    cls=lazy_group(STUDIES, _file_of),
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    help="Repeat a paper's study on your own notes: its tables, with its own numbers beside yours.",
)


@app.callback()
def _study() -> None:
    pass
