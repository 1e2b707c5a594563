"""Spark keeps the contract, on two executors of their own Java each, on loopback."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from map_contract import HERE, LOOPBACK, ElsewhereContract, _first, interrupted, listening

from clinveil.core import InputError, MissingExtra, UsageError
from clinveil.scale import ExecutorSettings, opened_for

pytest.importorskip("pyspark")
needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="no Java is here")
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")


def kill_executor(item):
    """Kill the Java that this Python worker works for: the parent of its daemon."""
    number, mark = item
    if number == 3 and _first(mark):
        status = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
    return number


@needs_java
def test_ctrl_c_leaves_nobody_behind(tmp_path):
    assert interrupted("spark", tmp_path) == (130, "", [])


@pytest.fixture(scope="module")
def started():
    before = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{HERE}{os.pathsep}{os.environ['PYTHONPATH']}")
        with opened_for(ExecutorSettings(on="spark", address="local-cluster[2,1,1024]"), 2) as over:
            assert signal.getsignal(signal.SIGINT) == before
            yield over


@needs_java
class TestSpark(ElsewhereContract):
    on = "spark"

    @pytest.fixture
    def over(self, started):
        return started

    def test_nothing_leaves_this_machine(self, over):
        found = listening()
        assert len(found) > 3 and set(found) <= LOOPBACK

    def test_a_spark_that_is_there_is_used_and_left(self, over):
        with opened_for(ExecutorSettings(on="spark"), 2) as again:
            assert list(again(len, ["a", "bc"])) == [1, 2]
        assert list(over(len, ["a"])) == [1]
        with (
            pytest.raises(UsageError, match="already has a Spark session"),
            opened_for(ExecutorSettings(on="spark", address="spark://h:7077"), 2),
        ):
            pass

    def test_a_killed_executor_changes_nothing(self, over, tmp_path):
        mark = str(tmp_path / "killed")
        assert list(over(kill_executor, [(i, mark) for i in range(6)])) == list(range(6))
        assert Path(mark).exists()


def test_nobody_at_the_address():
    from clinveil.scale.executors.spark import _started

    with (
        pytest.raises(InputError, match="no working Spark cluster answers"),
        _started(2, "spark://127.0.0.1:9", None),
    ):
        pass
    with (
        pytest.raises(UsageError, match="not a Spark address"),
        _started(2, "sc://127.0.0.1", None),
    ):
        pass


def test_java_that_does_not_work(tmp_path, monkeypatch):
    from pyspark import SparkContext

    from clinveil.scale.executors.spark import _gateway

    monkeypatch.setattr(SparkContext, "_gateway", None)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "java").chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with (
        pytest.raises(MissingExtra, match="a working Java 17 is not installed") as raised,
        _gateway(here=True),
    ):
        pass
    assert (
        raised.value.exit_code == 6
        and "openjdk-17" in str(raised.value)
        and "clinveil[spark]" in str(raised.value)
    )
