"""Ray keeps the contract, on loopback."""

from __future__ import annotations

import os
import signal

import pytest
from map_contract import HERE, LOOPBACK, ElsewhereContract, interrupted, listening

from clinveil.core import InputError, UsageError
from clinveil.scale import ExecutorSettings, opened_for

ray = pytest.importorskip("ray")


def test_ctrl_c_leaves_nobody_behind(tmp_path):
    assert interrupted("ray", tmp_path) == (130, "", [])


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    log = tmp_path_factory.mktemp("network") / "asked"
    variables = {
        "PYTHONPATH": f"{HERE}{os.pathsep}{os.environ['PYTHONPATH']}",
        "CLINVEIL_TEST_NETWORK_LOG": str(log),
    }
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        with opened_for(ExecutorSettings(on="ray"), 2) as over:
            assert signal.getsignal(signal.SIGTERM) == before
            yield over, log
    assert not ray.is_initialized() and "RAY_AUTH_TOKEN" not in os.environ


class TestRay(ElsewhereContract):
    on = "ray"

    @pytest.fixture
    def over(self, started):
        return started[0]

    def test_a_ray_that_is_there_is_used_and_left(self, over):
        with opened_for(ExecutorSettings(on="ray"), 2) as again:
            assert list(again(len, ["a", "bc"])) == [1, 2]
        assert ray.is_initialized()
        with (
            pytest.raises(UsageError, match="already uses a Ray"),
            opened_for(ExecutorSettings(on="ray", address="127.0.0.1:6379"), 2),
        ):
            pass

    def test_nothing_leaves_this_machine(self, started):
        found = listening()
        assert len(found) > 3 and set(found) <= LOOPBACK
        assert not started[1].exists()


def test_nobody_at_the_address():
    from clinveil.scale.executors.ray import _joined

    with (
        pytest.raises(InputError, match="no Ray answers at this address"),
        _joined(ray, "127.0.0.1:9"),
    ):
        pass
