"""Surrogates: invented identifiers that stand in the place of real ones, one kind a file.

Every surrogate is a pseudo-random function of (key, kind, patient, form of the original): the same in all notes of a
patient, other for every patient, whatever the order, batch or worker. Consistent surrogates keep a patient's story
readable and are the weaker choice for privacy (Osborne 2025, doi 10.3390/electronics14193945); `--mode tag` is
the other.

A surrogate is never the original itself. That is by construction, a draw from everything else in its pool, not by a
redraw. It says to a reader who knows the rule only that the original is not what stands there, which shifts
the odds of the true value by a factor 1/(1-p), p being the pool's share of the surrogate (at most 1.01 for a surname).
Nothing else is excluded: a surrogate may by chance be another patient's real name, and that is never mended, since
mending it would tell.
"""

from __future__ import annotations

from clinveil.phi.surrogates.maker import Surrogates

__all__ = ["Surrogates"]
