"""Token classifiers of Hugging Face's format that lie on disk: `--also hf:/path/to/model`.

The folder holds config.json, tokenizer.json and model.safetensors (weights in Python's own format are not opened, for
they can hold code). A long note is read in windows that overlap by a quarter. Labels are those of the i2b2 models,
of OntoNotes and CoNLL; ours are understood as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError, MissingExtra
from clinveil.phi.adapter import Adapter, Prediction, adapters
from clinveil.phi.adapters.spacy import LABELS as GENERAL

LONGEST = 512  # tokens of a window, at most
_GAP = 1  # characters between two tokens of one identifier
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
        positions = getattr(self._model.config, "max_position_embeddings", LONGEST)
        self._longest = min(LONGEST, self._tokenizer.model_max_length, positions - 2)  # some count from 2

    @property
    def labels(self) -> list[str]:
        """Those of its head."""
        return self._names

    def predict(self, text: str) -> Iterator[Prediction]:
        """Runs of tokens of one kind; of each token the likeliest label counts."""
        length = self._longest
        how = {"truncation": True, "max_length": length, "stride": length // 4, "padding": True, "return_tensors": "pt"}
        got = self._tokenizer(text, return_overflowing_tokens=True, return_offsets_mapping=True, **how)
        with self._torch.inference_mode():
            chances = self._model(input_ids=got["input_ids"], attention_mask=got["attention_mask"]).logits.softmax(-1)
        for window, places in zip(chances, got["offset_mapping"].tolist(), strict=True):
            best = window.max(-1)
            yield from self._runs(places, best.indices.tolist(), best.values.tolist())

    def _runs(self, places: list[list[int]], labels: list[int], scores: list[float]) -> Iterator[Prediction]:
        run: Prediction | None = None
        for (start, end), number, score in zip(places, labels, scores, strict=True):
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
    """PyTorch, the tokenizer and the model; nothing but this folder is asked."""
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    try:
        import torch
        import transformers
    except ImportError:
        raise MissingExtra("transformers", "huggingface") from None
    transformers.logging.set_verbosity_error()
    here = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(where), use_fast=True, **here)
        kind = transformers.AutoModelForTokenClassification
        model = kind.from_pretrained(str(where), use_safetensors=True, **here).eval()
    except Exception:  # noqa: BLE001  whatever the folder makes go wrong
        hint = "a folder with config.json, tokenizer.json and model.safetensors of a token classifier"
        raise InputError("holds no model that can be loaded", where=where.name, hint=hint) from None
    if not tokenizer.is_fast:
        raise InputError("its tokenizer gives no places", where=where.name, hint="it needs a tokenizer.json")
    return torch, tokenizer, model


adapters.register("huggingface")(Adapter(_Classifier, LABELS))
