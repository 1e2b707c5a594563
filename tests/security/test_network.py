"""Nothing leaves this machine: addresses are refused in the tests, and the commands never ask for one."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from canary_desk import FASTER


def test_the_block_works_here_and_in_a_child():
    with pytest.raises(OSError, match="no network"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    code = "import socket\ntry:\n    socket.getaddrinfo('example.org', 80)\nexcept OSError as e:\n    print(e)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "no network" in said.stdout


def test_a_whole_release_asks_for_no_address(tmp_path, monkeypatch):
    log = tmp_path / "asked"
    monkeypatch.setenv("CLINVEIL_TEST_NETWORK_LOG", str(log))
    run = [
        sys.executable,
        "-c",
        f"{FASTER}\nimport sys\nfrom clinveil.cli.main import main\nsys.exit(main(sys.argv[1:]))",
    ]
    made = ["demo", "--notes-only", "-o", "demo", "--patients", "60", "--seed", "1", "--quiet"]
    subprocess.run([*run, *made], cwd=tmp_path, check=True, capture_output=True)
    release = [
        "release",
        "demo/notes.parquet",
        "-o",
        "out",
        "--set",
        "epochs=1",
        "--set",
        "window=5",
        "--set",
        "dim=20",
    ]
    result = subprocess.run([*run, *release], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert not log.exists()
