"""Mapping on Ray (extra `[ray]`): the same results in the same order; usage statistics are switched off."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from clinveil.core.errors import MissingExtra
from clinveil.scale.local import Map


def on_ray(workers: int, address: str | None = None, *, ahead: int | None = None) -> Map:
    """A map over Ray tasks, on a local Ray unless an address is given; `ahead` as for `processes`.

    Raises MissingExtra without Ray.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray") from None
    if not ray.is_initialized():
        local = {} if address else {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        ray.init(address=address, log_to_driver=False, logging_level="error", **local)

    def run(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        task = ray.remote(lambda item: function(item))  # ray takes functions only; a partial is none
        window: deque[Any] = deque()
        for item in items:
            window.append(task.remote(item))
            if len(window) > (ahead or 2 * workers):
                yield ray.get(window.popleft())
        while window:
            yield ray.get(window.popleft())

    return run
