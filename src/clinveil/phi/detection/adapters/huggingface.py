"""Token classifiers in Hugging Face format, loaded from a local folder: setting `also`, value
`hf:/path/to/model`.

The folder contains config.json, tokenizer.json and model.safetensors (pickled weights are refused
because they can contain code). Long notes are processed in windows that overlap by a quarter; a
token of two windows gets the label of the window in which it has more context.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinveil.core import InputError, MissingExtra
from clinveil.phi.detection.adapter import PREFIX, Adapter, Prediction

MAX_TOKENS = 512  # maximum tokens per window
_WINDOWS = 8  # per batch
_GAP = 1  # maximum characters between two tokens of one identifier


class _Classifier:
    def __init__(self, where: Path | None) -> None:
        assert where is not None
        self._torch, self._tokenizer, self._model = _loaded(where)
        names = self._model.config.id2label
        self.labels = [str(names[number]) for number in range(len(names))]
        positions = getattr(self._model.config, "max_position_embeddings", MAX_TOKENS)
        # Some count from 2.
        self._longest = min(MAX_TOKENS, self._tokenizer.model_max_length, positions - 2)

    def predict(self, text: str) -> Iterator[Prediction]:
        """Yield runs of tokens with the same label; each token gets its most probable label."""
        run: Prediction | None = None
        for (start, end), (_, number, score) in sorted(self._tokens(text).items()):
            label = PREFIX.sub("", self.labels[number])
            if label == "O":
                continue
            if run and run.label == label and start - run.end <= _GAP:
                run = Prediction(run.start, max(run.end, end), label, max(run.score, score))
                continue
            if run:
                yield run
            run = Prediction(start, end, label, score)
        if run:
            yield run

    def _tokens(self, text: str) -> dict[tuple[int, int], tuple[int, int, float]]:
        """Return the offsets of each token with the number of tokens around it, its label and its
        probability.
        """
        read = self._tokenizer(
            text,
            truncation=True,
            max_length=self._longest,
            stride=self._longest // 4,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        best: dict[tuple[int, int], tuple[int, int, float]] = {}
        for first in range(0, len(read["input_ids"]), _WINDOWS):
            fields = {
                name: read[name][first : first + _WINDOWS]
                for name in ("input_ids", "attention_mask")
            }
            with self._torch.inference_mode():
                padded = self._tokenizer.pad(fields, return_tensors="pt")
                logits = self._model(
                    input_ids=padded["input_ids"], attention_mask=padded["attention_mask"]
                ).logits
            scores, labels = (values.tolist() for values in logits.softmax(-1).max(-1))
            for window, offsets in enumerate(read["offset_mapping"][first : first + _WINDOWS]):
                for index, (start, end) in enumerate(offsets):
                    token = (
                        min(index, len(offsets) - 1 - index),
                        labels[window][index],
                        scores[window][index],
                    )
                    if start < end and token > best.get((start, end), (-1,)):
                        best[start, end] = token
        return best


def _loaded(where: Path) -> tuple[Any, Any, Any]:
    """Return PyTorch, the tokenizer and the model. Only local files are read."""
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    try:
        import torch
        import transformers
    except ImportError:
        raise MissingExtra("transformers", "huggingface") from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(where), use_fast=True, local_files_only=True, trust_remote_code=False
        )
        model, report = transformers.AutoModelForTokenClassification.from_pretrained(
            str(where),
            use_safetensors=True,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    except Exception:  # noqa: BLE001  any fault of the folder's content
        hint = (
            "pass a folder with config.json, tokenizer.json and model.safetensors of a token"
            " classifier"
        )
        raise InputError(
            "cannot load a model from this folder", where=where.name, hint=hint
        ) from None
    architectures = " ".join(model.config.architectures or ())
    # Missing layers would be random.
    if report["missing_keys"] or "TokenClassification" not in architectures:
        hint = "pass a model that was trained to label tokens"
        raise InputError(
            "the model of this folder is not a token classifier", where=where.name, hint=hint
        )
    if not tokenizer.is_fast:
        hint = "add tokenizer.json to the folder"
        raise InputError("tokenizer returns no character offsets", where=where.name, hint=hint)
    return torch, tokenizer, model.eval()


HUGGINGFACE = Adapter("huggingface", _Classifier)
