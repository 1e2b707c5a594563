"""Addresses beyond this machine are refused in the tests; `test_canary.py` checks that no command
asks for one.
"""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest


def test_the_block_works_here_and_in_a_child():
    with pytest.raises(OSError, match="no network"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    code = (
        "import socket\ntry:\n    socket.getaddrinfo('example.org', 80)\nexcept OSError as e:\n   "
        " print(e)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "no network" in said.stdout
