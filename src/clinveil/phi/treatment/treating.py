"""`Treating`: compute the replacement of each span of a note from a policy and a key."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from clinveil.core.keys import Key
from clinveil.core.spans import Span
from clinveil.phi.detection.note import plain
from clinveil.phi.treatment.dated import dated
from clinveil.phi.treatment.policy import MASK, Policy, Treatment, tag
from clinveil.phi.treatment.surrogates import Surrogates
from clinveil.phi.treatment.surrogates.generalised import GENERALISED
from clinveil.phi.treatment.surrogates.names import NoteNames

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

_AFTER = 24  # characters after a place name that may contain its state


class Treated(NamedTuple):
    """Replacement of a span, and the treatment applied: that of the policy, or a tag if it failed."""

    text: str
    action: Treatment


@dataclass(frozen=True)
class Treating:
    """Treatment of identifiers.

    Attributes:
        key: all surrogates and date offsets are derived from it. policy: the treatment of each label.
        fresh: probability that a mention gets a new surrogate.
    """

    key: Key
    policy: Policy
    fresh: float = 0.0

    def spans(self, text: str, spans: Sequence[Span]) -> list[Span]:
        """Return the spans with those of `dated.py`; idempotent."""
        return dated(text, spans, years=self.policy.bare_years)

    def treated(self, text: str, spans: Sequence[Span], patient_id: str, patient: Patient | None) -> list[Treated]:
        """Return the replacement of each span."""
        surrogates = self._surrogates(text, spans)
        return [self._one(text, span, patient_id, patient, surrogates) for span in spans]

    def _surrogates(self, text: str, spans: Sequence[Span]) -> Surrogates:
        salt = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() if self.fresh else ""
        names = [(span.start, span.end) for span in spans if span.label == "NAME"]
        return Surrogates(self.key, self.fresh, salt, NoteNames(text, names))

    def _one(self, text: str, span: Span, patient_id: str, patient: Patient | None, surrogates: Surrogates) -> Treated:
        treatment, original = self.policy[span.label], text[span.start : span.end]
        replacement: str | None
        if treatment in (Treatment.SURROGATE, Treatment.SHIFT):
            replacement = surrogates.make(span.label, plain(original).text, patient_id, patient)
        elif treatment is Treatment.GENERALISE:
            replacement = GENERALISED[span.label](plain(original).text, text[span.end : span.end + _AFTER])
        else:
            replacement = {Treatment.KEEP: original, Treatment.REMOVE: "", Treatment.MASK: MASK}.get(treatment)
        if replacement is None:
            return Treated(tag(span.label), Treatment.TAG)
        return Treated(replacement, treatment)


def failed(policy: Policy, spans: Sequence[Span], treated: Sequence[Treated]) -> Counter[str]:
    """Count by label the spans that became a tag because the policy's treatment failed."""
    pairs = zip(spans, treated, strict=True)
    return Counter(span.label for span, item in pairs if item.action is not policy[span.label])
