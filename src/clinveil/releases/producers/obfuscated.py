"""Kind `obfuscated`: replace every word with a near neighbour (paper A, Algorithm 1, with a patient
floor).
"""

from __future__ import annotations

from math import ceil, sqrt

from clinveil.releases.producers._channel import ChannelProducer

FEWEST = 5


class Obfuscated(ChannelProducer):
    """Running text in source order with sentence ends."""

    def floor(self, patients: int) -> int:
        """Return how many patients must use a word before it may be released, given the number of
        patients.

        One in 40, at least 5; above 1,600 patients the square root: 8 for 300, 38 for 1,500, 1,000
        for a million.
        Source: measured (benchmarks/obfuscated.md).
        """
        return max(FEWEST, ceil(min(patients / 40, sqrt(patients))))


OBFUSCATED = Obfuscated()
