"""The collector of cycles rests while short work runs, and is as it was afterwards."""

import gc
import weakref

import pytest

from clinveil.core import uncollected


@pytest.mark.parametrize("was", [True, False])
def test_the_collector_rests_and_is_as_it_was(was):
    @uncollected
    def work(fails):
        if fails:
            raise KeyError
        return gc.isenabled()

    before = gc.isenabled()
    (gc.enable if was else gc.disable)()
    try:
        assert work(False) is False
        assert gc.isenabled() is was
        with pytest.raises(KeyError):
            work(True)
        assert gc.isenabled() is was
    finally:
        (gc.enable if before else gc.disable)()


def test_cycles_of_the_work_are_gone_at_its_end():
    class Node:
        pass

    @uncollected
    def work():
        one = Node()
        one.itself = one
        return weakref.ref(one)

    assert work()() is None
