"""From released ids back to source ids."""

from __future__ import annotations

from collections.abc import Mapping

from clinveil.core.errors import InputError


def source_id(released: str, crosswalk: Mapping[str, str] | None) -> str:
    """The source id of a released one; the same id without a crosswalk.

    Raises InputError if the crosswalk does not know it.
    """
    if crosswalk is None:
        return released
    if released not in crosswalk:
        raise InputError("a released id is not in the crosswalk", remedy="name the vault of this release")
    return crosswalk[released]
