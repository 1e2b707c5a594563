"""Token classifiers in Hugging Face format, loaded from a local folder: setting `also`, value `hf:/path/to/model`.

The folder contains config.json, tokenizer.json and model.safetensors (pickled weights are refused because they can
contain code). Long notes are processed in windows that overlap by a quarter. Supported labels are those of the i2b2
models, OntoNotes and CoNLL, and the identifier categories of clinveil.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError, MissingExtra
from clinveil.phi.detection.adapter import Adapter, Prediction, adapters
from clinveil.phi.detection.adapters.spacy import LABELS as GENERAL

MAX_TOKENS = 512  # maximum tokens per window
_GAP = 1  # maximum characters between two tokens of one identifier
LABELS: dict[str, str | None] = {
    **GENERAL,
    **dict.fromkeys(("NAME", "STAFF", "HCW", "USERNAME", "PATIENT_NAME", "FIRSTNAME", "LASTNAME", "GIVENNAME"), "NAME"),
    **dict.fromkeys(("CITY", "LOCATION", "LOCATION-OTHER", "LOCATION_OTHER", "COUNTY"), "CITY"),
    **dict.fromkeys(("STREET", "ADDRESS"), "ADDRESS"),
    **dict.fromkeys(("HOSPITAL", "HOSP", "ORGANIZATION", "PATORG", "VENDOR"), "HOSPITAL"),
    **dict.fromkeys(("ID", "IDNUM", "OTHERPHI", "OTHER", "UNIQUE"), "ID"),
    **dict.fromkeys(("MEDICALRECORD", "MRN"), "MRN"),
    "BIOID": "BIOMETRIC",
    "HEALTHPLAN": "HEALTH_PLAN",
    "ZIPCODE": "ZIP",
    "TELEPHONE": "PHONE",
    **dict.fromkeys(("AGE", "STATE", "COUNTRY", "PROFESSION")),  # only ages over 89 are identifiers
}


class _Classifier:
    def __init__(self, where: Path | None) -> None:
        assert where is not None
        self._torch, self._tokenizer, self._model = _loaded(where)
        names = self._model.config.id2label
        self._names = [str(names[number]) for number in range(len(names))]
        positions = getattr(self._model.config, "max_position_embeddings", MAX_TOKENS)
        self._longest = min(MAX_TOKENS, self._tokenizer.model_max_length, positions - 2)  # some count from 2

    @property
    def labels(self) -> list[str]:
        """Return the labels of the classification head."""
        return self._names

    def predict(self, text: str) -> Iterator[Prediction]:
        """Yield runs of tokens with the same label; each token gets its most probable label."""
        length = self._longest
        options = {"truncation": True, "max_length": length, "stride": length // 4, "padding": True}
        extras = {"return_overflowing_tokens": True, "return_offsets_mapping": True, "return_tensors": "pt"}
        tokens = self._tokenizer(text, **options, **extras)
        with self._torch.inference_mode():
            logits = self._model(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]).logits
            probabilities = logits.softmax(-1)
        for window, offsets in zip(probabilities, tokens["offset_mapping"].tolist(), strict=True):
            best = window.max(-1)
            yield from self._runs(offsets, best.indices.tolist(), best.values.tolist())

    def _runs(self, offsets: list[list[int]], labels: list[int], scores: list[float]) -> Iterator[Prediction]:
        run: Prediction | None = None
        for (start, end), number, score in zip(offsets, labels, scores, strict=True):
            label = self._names[number].split("-", 1)[-1]
            if end <= start or label == "O":
                continue
            if run and run.label == label and start - run.end <= _GAP:
                run = Prediction(run.start, end, label, max(run.score, score))
                continue
            if run:
                yield run
            run = Prediction(start, end, label, score)
        if run:
            yield run


def _loaded(where: Path) -> tuple[Any, Any, Any]:
    """Return PyTorch, the tokenizer and the model. Only local files are read."""
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    try:
        import torch
        import transformers
    except ImportError:
        raise MissingExtra("transformers", "huggingface") from None
    transformers.logging.set_verbosity_error()
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(where), use_fast=True, **options)
        kind = transformers.AutoModelForTokenClassification
        model = kind.from_pretrained(str(where), use_safetensors=True, **options).eval()
    except Exception:  # noqa: BLE001  any fault of the folder's content
        hint = "pass a folder with config.json, tokenizer.json and model.safetensors of a token classifier"
        raise InputError("cannot load a model from this folder", where=where.name, hint=hint) from None
    if not tokenizer.is_fast:
        hint = "add tokenizer.json to the folder"
        raise InputError("tokenizer returns no character offsets", where=where.name, hint=hint)
    return torch, tokenizer, model


adapters.register("huggingface")(Adapter(_Classifier, LABELS))
