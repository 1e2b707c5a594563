"""Presidio's analyzer: `--also presidio` (its patterns) or `--also presidio:/path/to/pipeline` (also a spaCy model).

Without a pipeline it runs on a blank one, which finds no names, places or organisations. Its recognisers are chosen
here, so that none of it reaches out: top-level domains are those it brings (and an e-mail address within a hospital's
own network counts, though its domain is none of the world's); phones are looked for in three countries, not eight; a
lemma is the word itself, as context words raise no score without; what scores under `LEAST` is not taken, or every
short code would be a driving licence.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinveil.core.errors import MissingExtra
from clinveil.phi.adapter import Adapter, Prediction, adapters
from clinveil.phi.adapters.spacy import load_pipeline

LEAST = 0.4
REGIONS = ("US", "CA", "GB")
RECOGNIZERS = (
    *(
        "CreditCard",
        "CaSin",
        "Date",
        "Iban",
        "Ip",
        "MacAddress",
        "MedicalLicense",
        "Nhs",
        "UkNino",
        "UkPostcode",
        "Url",
    ),
    *("UsBank", "UsItin", "UsLicense", "UsMbi", "UsNpi", "UsPassport", "UsSsn"),
)
LABELS: dict[str, str | None] = {
    "PERSON": "NAME",
    "LOCATION": "CITY",
    "ORGANIZATION": "HOSPITAL",
    "DATE_TIME": "DATE",
    "EMAIL_ADDRESS": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "CREDIT_CARD": "ACCOUNT",
    "IBAN_CODE": "ACCOUNT",
    "US_BANK_NUMBER": "ACCOUNT",
    "IP_ADDRESS": "IP",
    "MAC_ADDRESS": "DEVICE",
    "MEDICAL_LICENSE": "LICENSE",
    "US_DRIVER_LICENSE": "LICENSE",
    "US_NPI": "LICENSE",
    "US_MBI": "HEALTH_PLAN",
    "US_SSN": "SSN",
    "CA_SIN": "SSN",
    "UK_NINO": "SSN",
    "UK_NHS": "MRN",
    "UK_POSTCODE": "ZIP",
    "US_ITIN": "ID",
    "US_PASSPORT": "ID",
    "NRP": None,
    "AGE": None,  # only ages over 89 are identifiers
    "ID": "ID",
}


class _Analyzer:
    def __init__(self, where: Path | None) -> None:
        self._engine = _engine(where)

    @property
    def labels(self) -> list[str]:
        """Its entities."""
        return sorted(self._engine.get_supported_entities(language="en"))

    def predict(self, text: str) -> Iterator[Prediction]:
        """What scores enough."""
        for one in self._engine.analyze(text=text, language="en", score_threshold=LEAST):
            yield Prediction(one.start, one.end, one.entity_type, one.score)


def _engine(where: Path | None) -> Any:
    try:
        import presidio_analyzer as presidio
        import spacy
        from presidio_analyzer import predefined_recognizers as kinds
        from presidio_analyzer.nlp_engine import SpacyNlpEngine
    except ImportError:
        raise MissingExtra("presidio-analyzer", "presidio") from None
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    language = _blank(spacy) if where is None else load_pipeline(where)

    class Engine(SpacyNlpEngine):  # type: ignore[misc,unused-ignore]
        """Presidio's engine on a pipeline that is there already: its own `load` would download one."""

        def load(self) -> None:
            """Nothing is loaded."""
            self.nlp = {"en": language}

    class Emails(kinds.EmailRecognizer):  # type: ignore[misc,unused-ignore]
        """Addresses of any domain: Presidio's check asks the network for a list of domains, and drops internal ones."""

        def validate_result(self, pattern_text: str) -> None:
            """No check beyond the pattern."""
            return

    chosen = [getattr(kinds, f"{name}Recognizer")() for name in RECOGNIZERS]
    chosen += [Emails(), kinds.PhoneRecognizer(supported_regions=REGIONS)]
    if where is not None:
        chosen.append(kinds.SpacyRecognizer())
    registry = presidio.RecognizerRegistry(recognizers=chosen, supported_languages=["en"])
    made = Engine(models=[{"lang_code": "en", "model_name": "blank"}])
    made.load()
    return presidio.AnalyzerEngine(registry=registry, nlp_engine=made, supported_languages=["en"])


def _blank(spacy: Any) -> Any:
    """An English tokenizer whose lemmas are the words in lower case."""
    if not spacy.Language.has_factory("clinveil_lemmas"):

        @spacy.Language.component("clinveil_lemmas")  # type: ignore[untyped-decorator,unused-ignore]
        def lemmas(doc: Any) -> Any:
            for token in doc:
                token.lemma_ = token.lower_
            return doc

    language = spacy.blank("en")
    language.add_pipe("clinveil_lemmas")
    language.max_length = 1 << 30
    return language


adapters.register("presidio")(Adapter(_Analyzer, LABELS, needs_path=False))
