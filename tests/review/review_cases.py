"""Notes with odd Unicode, the run over them, and what its reviewer's file says."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from contextlib import contextmanager
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.cli import main
from clinveil.phi import ReviewServer

TEXTS = {
    "plain": "Dr. Xiuyingsecret saw Mary Okwuosa on 3/4/2019.\nFoley catheter was changed.",
    "emoji": "😀 Mary Okwuosa 👩‍⚕️ said «fine».\r\nSeen on 3/14/2019 by Dr. Ndiaye\u200b.",
    "rtl": "מטופל: Mary Okwuosa, tel. 617-555-0134.\nJose\u0301 Garci\u0301a visited.",
    "empty": "Nothing to see, no pain.",
    "doubtful": "It was Zylphara and then Vrantik, or Quomble, who asked Dr. Smith.",
}


def deidentify(*arguments) -> int:
    return main(
        [
            "deidentify",
            *map(str, arguments),
            "--workers",
            "1",
            "-q",
            "--set",
            "identifiers.no_tagger=true",
        ]
    )


def write_notes(path, texts=TEXTS):
    ids = list(texts)
    pq.write_table(
        pa.table({"note_id": ids, "patient_id": ids, "text": list(texts.values())}), path
    )
    return path


def decision_lines(folder, reviewer="first"):
    path = folder / "out.parquet.vault" / "review" / f"{reviewer}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def serving(desk):
    """A server of a desk in a thread of this process."""
    with ReviewServer(desk) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def served(folder, **pipes):
    """A `clinveil review` in a process of its own, and the address that it prints; killed at the
    end.
    """
    flags = shlex.split("--set order=given --set quiet=true")
    with subprocess.Popen(
        [sys.executable, "-m", "clinveil", "review", "out.parquet", *flags],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        **pipes,
    ) as process:
        try:
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.kill()
