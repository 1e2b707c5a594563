"""The canaries, how commands are run beside them in a home of their own, and how files are searched
for them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

# Words that no lexicon holds; each stands in the notes of at most four patients.
CANARIES = (
    "zyqquavex",
    "brunthwock",
    "Ölmquîrst",
    "Қызқұрттан",
    "vexilloquart",
    "pfnordling",
    "QWERTZUIOPLAN",
)
NUMBER = "90417736205"
SENTENCE = " Seen by " + " ".join(CANARIES) + f" today, number {NUMBER}."

# A small release under a random key occasionally exceeds a gate's limit.
FASTER = f"""
import hashlib, itertools, sys
sys.path.append({str(Path(__file__).parents[1])!r})
import small_attacks
from clinveil.core.keys import KEY_BYTES, Key
digests = (hashlib.sha256(f"desk {{count}}".encode()).digest() for count in itertools.count())
keys = (digest[:KEY_BYTES] for digest in digests)
Key.generate = classmethod(lambda cls: cls(next(keys)))
"""
RUN = f"""
import json, sys
from clinveil.cli.entry import main
{FASTER}
for line in sys.stdin:
    arguments = json.loads(line)
    print(arguments[0], main(arguments), flush=True)
"""


def folders(root: Path) -> Path:
    """A working folder, a home and a temporary folder that nothing else uses."""
    for name in ("work", "home", "tmp"):
        (root / name).mkdir()
    return root


def run(root: Path, commands: list[list[str]], program: str = RUN) -> Path:
    """Run commands one after another in one process; what they say is kept in `said`."""
    training = str(Path(__file__).parents[2] / "training")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), training))),
        **{
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "XDG_CACHE_HOME": str(root / "home" / "cache"),
        },
        "CLINVEIL_TEST_NETWORK_LOG": str(root / "asked"),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="".join(json.dumps(command) + "\n" for command in commands),
        cwd=root / "work",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    (root / "said").write_text(done.stdout + "\n" + done.stderr)
    return root


def exit_codes(root: Path) -> list[int]:
    lines = (root / "said").read_text().splitlines()
    return [int(match[1]) for line in lines if (match := re.fullmatch(r"[a-z]+ (\d+)", line))]


def found(path: Path) -> list[str]:
    """The canaries in the bytes of a file or of all files of a folder, in any letter case."""
    if path.is_dir():
        return [c for file in sorted(path.rglob("*")) if file.is_file() for c in found(file)]
    data = path.read_bytes()
    if path.suffix == ".parquet":
        data = str(pq.read_table(path).to_pylist()).encode()
    folded = data.decode("utf-8", "replace").casefold()
    return [c for c in (*CANARIES, NUMBER) if c.casefold() in folded]
