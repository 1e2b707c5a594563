"""What several releases of the same notes compute once: the releases of a comparison."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from clinveil.phi import PhiSettings, SpanMemory


@dataclass(frozen=True)
class SharedWork:
    """Results that the releases of one comparison share, in memory, without text and without a key.

    A release with the same seed is the same with and without them.

    Attributes:
        test_salt: salt of the draw of the test patients, so that releases under different keys are
            tested on the same patients; None for that of each key.
        spans: settings of the detectors -> the spans that they have returned.
    """

    test_salt: bytes | None = field(default=None, repr=False)
    spans: dict[str, SpanMemory] = field(default_factory=dict, repr=False)

    def spans_of(self, settings: PhiSettings) -> SpanMemory:
        """Return the spans of detectors with these settings; a run adds to them."""
        values = {name: str(value) for name, value in settings.named_values().items()}
        return self.spans.setdefault(json.dumps(values, sort_keys=True), {})
