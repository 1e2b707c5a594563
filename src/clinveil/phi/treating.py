"""`Treating`: what stands in the place of each span of a note, by a policy and under a key."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from clinveil.core.keys import Key
from clinveil.core.spans import Span
from clinveil.phi.dated import dated
from clinveil.phi.note import plain
from clinveil.phi.policy import MASK, Policy, Treatment, tag
from clinveil.phi.surrogates import Surrogates
from clinveil.phi.surrogates.generalised import GENERALISED
from clinveil.phi.surrogates.names import NoteNames

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

_AFTER = 24  # characters after a place that may name its state


class Treated(NamedTuple):
    """What stands in the place of a span, and what was done: the policy's treatment, or a tag where that failed."""

    text: str
    action: Treatment


@dataclass(frozen=True)
class Treating:
    """What becomes of identifiers.

    Attributes:
        key: all surrogates and date offsets come from it. policy: the treatment of each label.
        fresh: the chance that a mention gets a surrogate of its own.
    """

    key: Key
    policy: Policy
    fresh: float = 0.0

    def spans(self, text: str, spans: Sequence[Span]) -> list[Span]:
        """The spans with what belongs to their dates; doing it twice changes nothing."""
        return dated(text, spans, years=self.policy.bare_years)

    def treated(self, text: str, spans: Sequence[Span], patient_id: str, patient: Patient | None) -> list[Treated]:
        """What stands in the place of each span."""
        surrogates = self._surrogates(text, spans)
        return [self._one(text, span, patient_id, patient, surrogates) for span in spans]

    def _surrogates(self, text: str, spans: Sequence[Span]) -> Surrogates:
        salt = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() if self.fresh else ""
        names = [(span.start, span.end) for span in spans if span.label == "NAME"]
        return Surrogates(self.key, self.fresh, salt, NoteNames(text, names))

    def _one(self, text: str, span: Span, patient_id: str, patient: Patient | None, surrogates: Surrogates) -> Treated:
        what, original = self.policy[span.label], text[span.start : span.end]
        made: str | None
        if what in (Treatment.SURROGATE, Treatment.SHIFT):
            made = surrogates.make(span.label, plain(original).text, patient_id, patient)
        elif what is Treatment.GENERALISE:
            made = GENERALISED[span.label](plain(original).text, text[span.end : span.end + _AFTER])
        else:
            made = {Treatment.KEEP: original, Treatment.REMOVE: "", Treatment.MASK: MASK}.get(what)
        return Treated(tag(span.label), Treatment.TAG) if made is None else Treated(made, what)


def failed(policy: Policy, spans: Sequence[Span], treated: Sequence[Treated]) -> Counter[str]:
    """How many spans were tagged for want of what the policy says, by label."""
    pairs = zip(spans, treated, strict=True)
    return Counter(span.label for span, made in pairs if made.action is not policy[span.label])
