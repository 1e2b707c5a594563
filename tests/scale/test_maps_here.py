"""The maps of this machine keep the contract; how an executor is chosen."""

from __future__ import annotations

import os
import sys
import threading

import pytest
from map_contract import MapContract, WorkersContract, process

from clinveil.core import InputError, MissingExtra, run_hash
from clinveil.phi import DeidentifySettings
from clinveil.releases import ReleaseSettings
from clinveil.releases.record import public_settings
from clinveil.scale import ExecutorSettings, opened_for, serial, threads
from clinveil.scale.executors._cluster import (
    RemoteCall,
    RemoteOutcome,
    environment,
    outcomes,
    scratch,
)


class TestSerial(MapContract):
    @pytest.fixture
    def over(self):
        return serial


class TestThreads(MapContract):
    @pytest.fixture
    def over(self):
        return threads(2)


class TestProcesses(WorkersContract):
    @pytest.fixture
    def over(self):
        with opened_for(ExecutorSettings(on="local"), 2) as over:
            yield over


@pytest.mark.parametrize("kind", [DeidentifySettings, ReleaseSettings])
def test_commands_take_the_same_flags(kind):
    settings = kind.model_validate(
        {
            "executor": {"on": "spark", "address": "spark://h:7077", "tasks": 640},
            "workers": 3,
        }
    )
    assert settings.executor == ExecutorSettings(on="spark", address="spark://h:7077", tasks=640)
    with pytest.raises(ValueError, match="local, ray, spark"):
        kind.model_validate({"executor": {"on": "dask"}})


def test_who_did_the_work_changes_no_run_and_is_told_to_nobody():
    cluster = {"on": "ray", "address": "10.1.2.3:6379", "tasks": 9}
    other = {"executor": cluster, "workers": 7}
    assert run_hash(DeidentifySettings()) == run_hash(DeidentifySettings.model_validate(other))
    assert public_settings(ReleaseSettings()) == public_settings(
        ReleaseSettings.model_validate(other)
    )


def test_no_more_processes_and_threads_than_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    with opened_for(ExecutorSettings(on="local"), 640) as over:
        assert len(set(over(process, range(40)))) <= 2
    assert len(set(threads(640)(lambda item: threading.get_ident(), range(40)))) <= 2


@pytest.mark.parametrize("slots", [1, 8])
def test_so_many_tasks_are_on_a_cluster(slots):
    submitted = []
    most = 0

    def fetch(item):
        nonlocal most
        most = max(most, len(submitted) - item)
        return RemoteOutcome(item)

    sizes = {"slots": slots, "tasks": 3, "ahead": None}
    assert list(
        outcomes(lambda item: submitted.append(item) or item, range(9), fetch, print, **sizes)
    ) == [*range(9)]
    assert most == 3


@pytest.mark.parametrize("given", [{"address": "h:1"}, {"tasks": 3}])
def test_local_work_has_no_address_and_no_number_of_tasks(given):
    with pytest.raises(ValueError, match="set on to ray or spark"):
        ExecutorSettings(**given)
    assert ExecutorSettings(on="ray", **given).on == "ray"


def test_what_needs_no_processes_gets_threads():
    with opened_for(ExecutorSettings(), 2, threaded=True) as over:
        assert set(over(lambda x: os.getpid(), range(3))) == {os.getpid()}


@pytest.mark.parametrize(("on", "library"), [("ray", "ray"), ("spark", "pyspark.sql")])
def test_without_the_extra(on, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with (
        pytest.raises(MissingExtra, match=rf"pip install 'clinveil\[{on}\]'") as raised,
        opened_for(ExecutorSettings(on=on), 1),
    ):
        pass
    assert raised.value.exit_code == 6


def test_a_worker_with_other_code_is_refused():
    outcome = RemoteCall(lambda x: x, code="0" * 64)(1)
    with pytest.raises(InputError, match="another version of clinveil"):
        outcome.get()


def test_an_error_that_cannot_be_sent_tells_its_kind_alone():
    class Locked(Exception):
        def __deepcopy__(self, scope):
            raise TypeError

    def fail(x):
        raise Locked("words of a note")

    with pytest.raises(RuntimeError, match="Locked"):
        RemoteCall(fail)(1).get()


def test_surroundings_are_as_before(monkeypatch):
    monkeypatch.setenv("CLINVEIL_TEST_A", "1")
    with environment({"CLINVEIL_TEST_A": "2", "CLINVEIL_TEST_B": "3"}), scratch() as folder:
        (folder / "file").write_text("x")
        assert os.environ["CLINVEIL_TEST_A"] == "2" and folder.stat().st_mode & 0o777 == 0o700
    assert os.environ["CLINVEIL_TEST_A"] == "1" and "CLINVEIL_TEST_B" not in os.environ
    assert not folder.exists()
