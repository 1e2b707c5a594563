"""PyTorch's place: absent, on a device that is not there, and deterministic under a seed."""

from __future__ import annotations

import importlib.util

import pytest

from clinveil.core import MissingExtra, UsageError, neural

torch = pytest.importorskip("torch", reason="needs the extra [neural]")


def test_without_torch_the_error_holds_the_pip_line(monkeypatch):
    monkeypatch.setattr(neural, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'clinveil\[neural\]'") as caught:
        neural.need_torch()
    assert caught.value.exit_code == 6


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cpu:z", "", "tpu:0"])
def test_unknown_devices_are_refused_in_one_line(name):
    with pytest.raises(UsageError, match="device="):
        neural.device_named(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="no GPU"):
        neural.device_named("cuda")


def test_a_seed_gives_the_same_draws_and_leaves_no_trace():
    state = torch.random.get_rng_state()
    threads = torch.get_num_threads()
    with neural.seeded(3):
        first = torch.rand(4)
        assert torch.get_num_threads() == 1
        assert torch.are_deterministic_algorithms_enabled()
    with neural.seeded(3):
        again = torch.rand(4)
    with neural.seeded(4):
        other = torch.rand(4)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()


def test_an_error_inside_restores_all_the_same():
    state = torch.random.get_rng_state()
    with pytest.raises(ValueError, match="inside"), neural.seeded(3):
        torch.rand(1)
        raise ValueError("inside")
    assert torch.equal(state, torch.random.get_rng_state())
    assert not torch.are_deterministic_algorithms_enabled()


def least() -> float:
    """A number below the smallest normal one, after a sum."""
    return float(torch.full((), 1e-39) * 1)


@pytest.mark.skipif(
    not torch.set_flush_denormal(False), reason="this processor keeps subnormal numbers"
)
def test_tiny_numbers_are_zero_inside_and_what_they_were_outside():
    assert least() > 0
    with neural.seeded(3):
        assert least() == 0
        with neural.seeded(4):
            assert least() == 0
        assert least() == 0
    assert least() > 0


def test_importing_the_room_imports_no_torch():
    import subprocess
    import sys

    code = "import sys, clinveil.core.neural; sys.exit('torch' in sys.modules)"
    assert importlib.util.find_spec("torch") is not None
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
