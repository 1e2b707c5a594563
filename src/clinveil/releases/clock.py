"""The stages of a run: how long each takes, said and written down."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from clinveil.core.types import Say
from clinveil.report.record import StageRow


def nothing(line: str) -> None:
    """Say it to nobody."""


@dataclass
class Clock:
    """Times the stages and says what goes on."""

    say: Say
    rows: list[StageRow] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str, what: str, determinism: str = "bitwise") -> Iterator[dict[str, str]]:
        """Time a stage; what it learns of its own determinism, it writes into what is yielded."""
        self.say(f"{name}: {what}")
        said, began = {"determinism": determinism}, time.perf_counter()
        yield said
        seconds = round(time.perf_counter() - began, 2)
        stays: Literal["vault", "release"] = "release" if name == "obfuscate" else "vault"
        self.rows.append(StageRow(name, what, said["determinism"], seconds, stays=stays))
