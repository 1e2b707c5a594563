"""Time the steps of a run, announce them, and show on a terminal which stage of the plan is running."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from clinveil.core.progress import stage
from clinveil.core.types import Say
from clinveil.corpus.estimate import stage_of
from clinveil.report.record import StageRow


def nothing(line: str) -> None:
    """Discard the message."""


@dataclass
class StageTimer:
    """Time and announce the steps of a run.

    Attributes:
        rows: the steps so far. plan: estimated seconds by stage, in order.
    """

    say: Say
    rows: list[StageRow] = field(default_factory=list)
    plan: Mapping[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, what: str, determinism: str = "bitwise") -> Iterator[dict[str, str]]:
        """Time a stage; it can overwrite the determinism in the yielded dictionary."""
        self.say(f"{name}: {what}")
        result, began = {"determinism": determinism}, time.perf_counter()
        with stage(stage_of(name), self.plan, self.say):
            yield result
        seconds = round(time.perf_counter() - began, 2)
        stays: Literal["vault", "release"] = "release" if name == "obfuscate" else "vault"
        self.rows.append(StageRow(name, what, result["determinism"], seconds, stays=stays))
