"""Kind `coded`: replace every word with the code of a cluster of similar words, shuffled within the
note.
"""

from __future__ import annotations

from types import MappingProxyType

from clinveil.releases.producer import producers
from clinveil.releases.producers._channel import ChannelProducer


class Coded(ChannelProducer):
    """Notes as bags of cluster codes: for statistical analysis within the release, not for
    reading.
    """

    defaults = MappingProxyType(
        {
            "mechanism": "clusters",
            "scope": "rare",
            "shuffle": "note",
            "vary_length": 0.2,
            "background": 0.0,
            "layout": "plain",
            "min_patients": 5,
        }
    )


producers.register("coded")(Coded())
