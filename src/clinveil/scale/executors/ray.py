"""Ray tasks (extra `[ray]`), on a Ray of this machine unless an address is given."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from clinveil.core.errors import MissingExtra
from clinveil.scale.executor import executors
from clinveil.scale.local import Map, behind


@executors.register("ray")
@contextmanager
def ray(workers: int, address: str | None, ahead: int | None) -> Iterator[Map]:
    """A map over Ray tasks; usage statistics are switched off. Raises MissingExtra without Ray."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray") from None
    started = not ray.is_initialized()
    if started:
        local = {} if address else {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        ray.init(address=address, log_to_driver=False, logging_level="error", **local)

    def run(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        task = ray.remote(lambda item: function(item))  # ray takes functions only; a partial is none
        return map(ray.get, behind(map(task.remote, items), deque(), ahead or 2 * workers))

    try:
        yield run
    finally:
        if started:
            ray.shutdown()
