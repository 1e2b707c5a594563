"""One token mechanism per file; see `channel/mechanism.py` to add one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinveil.core.registry import Registry

if TYPE_CHECKING:
    from clinveil.channel.mechanism import Mechanism

mechanisms: Registry[type[Mechanism]] = Registry("mechanism", __name__, first=("neighbours",))
"""All mechanisms by name, as in the command line and the manifest."""
