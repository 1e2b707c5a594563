"""Map a function over batches or tasks, with the same ordered results for every executor.

A `Map` takes a function and items and yields the results in the order of the items.
"""

from __future__ import annotations

from clinveil.scale.local import Map, processes, serial, threads

__all__ = ["Map", "processes", "serial", "threads"]
