"""Running text: every word is replaced by a near neighbour of it (paper A, Algorithm 1, with a patient floor)."""

from __future__ import annotations

from math import ceil, sqrt
from types import MappingProxyType

from clinveil.releases.producer import producers
from clinveil.releases.producers._channel import ChannelProducer

FEWEST = 5


def patient_floor(patients: int) -> int:
    """Return how many patients must use a word before it may be released, for notes of this many patients.

    One patient in 40, at least 5, and above 1,600 patients their square root: 8 of 300, 38 of 1,500, 1,000 of a
    million. Source: measured (benchmarks/obfuscated.md).
    """
    return max(FEWEST, ceil(min(patients / 40, sqrt(patients))))


class Obfuscated(ChannelProducer):
    """Notes in the order of their words, one word per word, with sentence ends; the default."""

    defaults = MappingProxyType(
        {
            "mechanism": "neighbours",
            "n": "3-14",
            "scope": "occurrence",
            "shuffle": "none",
            "vary_length": 0.0,
            "background": 0.6,
            "layout": "sentences",
            "min_patients": "auto",
        }
    )
    profiles = MappingProxyType(
        {
            "strict": {"n": "7-20", "background": 0.8},
            "paper": {
                "layout": "plain",
                "min_patients": 5,
                "background": 0.0,
                "algorithm": "cbow",
                "window": 5,
                "epochs": 5,
                "train_words": 0,
                "max_names": 1.0,
                "max_linkage": 1.0,
            },
        }
    )

    def floor(self, patients: int) -> int:
        """The patient floor of `--min-patients auto`."""
        return patient_floor(patients)


producers.register("obfuscated")(Obfuscated())
