"""Presidio's analyzer: setting `also`, value `presidio` (patterns only) or
`presidio:/path/to/pipeline` (with spaCy).

Without a pipeline a blank one is used, which detects no names, places or organisations. The
recognisers are selected and configured here so that none of them uses the network:

- E-mail addresses of any domain are accepted. Presidio's own check downloads a list of top-level
  domains and rejects addresses in a hospital's internal network.
- Phone numbers are matched for three countries instead of eight.
- The lemma of a token is the token itself; without lemmas, context words do not raise a score.
- Findings with a score below `MIN_SCORE` are dropped; otherwise every short code is reported as a
  driving licence.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinveil.core import InputError, MissingExtra
from clinveil.phi.detection.adapter import Adapter, Prediction

MIN_SCORE = 0.4
REGIONS = ("US", "CA", "GB")
RECOGNIZERS = (
    "CreditCard CaSin Date Iban Ip MacAddress MedicalLicense Nhs UkNino UkPostcode Url UsBank"
    " UsItin UsLicense UsMbi UsNpi UsPassport UsSsn"
)


class _Analyzer:
    def __init__(self, where: Path | None) -> None:
        self._engine = _engine(where)

    @property
    def labels(self) -> list[str]:
        """Return the supported entity types."""
        return sorted(self._engine.get_supported_entities(language="en"))

    def predict(self, text: str) -> Iterator[Prediction]:
        """Yield findings with a sufficient score."""
        for result in self._engine.analyze(text=text, language="en", score_threshold=MIN_SCORE):
            yield Prediction(result.start, result.end, result.entity_type, result.score)


def _engine(where: Path | None) -> Any:
    try:
        import presidio_analyzer as presidio
        import spacy
        from presidio_analyzer import predefined_recognizers as kinds
        from presidio_analyzer.nlp_engine import SpacyNlpEngine
    except ImportError:
        raise MissingExtra("presidio-analyzer", "presidio") from None
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    language = _blank(spacy) if where is None else _loaded(spacy, where)

    class Engine(SpacyNlpEngine):  # type: ignore[misc,unused-ignore]
        """Presidio's engine on a pipeline that is already loaded: the original `load` downloads
        one.
        """

        def load(self) -> None:
            """Use the given pipeline."""
            self.nlp = {"en": language}

    class Emails(kinds.EmailRecognizer):  # type: ignore[misc,unused-ignore]
        """E-mail addresses of any domain: Presidio's check downloads a list of domains and rejects
        internal ones.
        """

        def validate_result(self, pattern_text: str) -> None:
            """Accept every match of the pattern."""
            return

    chosen = [getattr(kinds, f"{name}Recognizer")() for name in RECOGNIZERS.split()]
    chosen += [Emails(), kinds.PhoneRecognizer(supported_regions=REGIONS)]
    if where is not None:
        chosen.append(kinds.SpacyRecognizer())
    registry = presidio.RecognizerRegistry(recognizers=chosen, supported_languages=["en"])
    engine = Engine(models=[{"lang_code": "en", "model_name": "blank"}])
    engine.load()
    return presidio.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])


def _loaded(spacy: Any, where: Path) -> Any:
    """Load a pipeline of spaCy from a folder. Raises InputError if it contains no valid one."""
    try:
        language = spacy.load(where)
    except Exception:  # noqa: BLE001  any fault of its configuration; the message may be long
        raise InputError(
            "cannot load a spaCy pipeline from this folder", where=where.name
        ) from None
    language.max_length = 1 << 30
    return language


def _blank(spacy: Any) -> Any:
    """Return an English tokenizer whose lemmas are the lower-case tokens."""
    if not spacy.Language.has_factory("clinveil_lemmas"):

        def lemmas(doc: Any) -> Any:
            for token in doc:
                token.lemma_ = token.lower_
            return doc

        spacy.Language.component("clinveil_lemmas", func=lemmas)

    language = spacy.blank("en")
    language.add_pipe("clinveil_lemmas")
    language.max_length = 1 << 30
    return language


PRESIDIO = Adapter("presidio", _Analyzer, needs_path=False)
