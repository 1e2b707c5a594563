"""Ways to map a function over batches or tasks: the same results in the same order, whoever does the work.

A `Map` takes a function and items and yields the results in the order of the items. No room knows which is in use.
"""

from __future__ import annotations

from clinveil.scale.local import Map, processes, processes_later, serial, threads

__all__ = ["Map", "processes", "processes_later", "serial", "threads"]
