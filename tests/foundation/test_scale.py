"""Every Map gives the same results in the same order."""

from __future__ import annotations

import pytest

from clinveil.scale import processes, serial, threads
from clinveil.tokens import words


def square(x: int) -> int:
    if x < 0:
        raise ValueError("negative")
    return x * x


MAPS = {"serial": serial, "threads": threads(3), "one": processes(1), "processes": processes(2)}


@pytest.mark.parametrize("name", MAPS)
def test_same_results_same_order(name):
    assert list(MAPS[name](square, range(50))) == [x * x for x in range(50)]
    assert list(MAPS[name](square, [])) == []


@pytest.mark.parametrize("name", MAPS)
def test_a_failure_comes_through(name):
    with pytest.raises(ValueError, match="negative"):
        list(MAPS[name](square, [1, -1, 2]))


def test_threads_read_few_items_ahead():
    seen = []

    def items():
        for i in range(1000):
            seen.append(i)
            yield i

    results = threads(2)(square, items())
    next(results)
    assert len(seen) < 20


def test_ray_gives_the_same():
    ray = pytest.importorskip("ray")
    from clinveil.scale.on_ray import on_ray

    texts = [f"note {chr(97 + i)} of José" for i in range(9)]
    try:
        assert list(on_ray(1)(words, texts)) == [words(t) for t in texts]
    finally:
        ray.shutdown()
