"""One thread: networks this small are slower on more, most of all where others are at work."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    if find_spec("torch") is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
