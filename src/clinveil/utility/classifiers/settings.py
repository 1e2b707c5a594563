"""How classifiers are trained on labelled notes."""

from __future__ import annotations

from typing import Literal

from clinveil.core.settings import Settings, flag


class ClassifierSettings(Settings):
    """How classifiers are trained on labelled notes (paper A); `size` sets what is not given."""

    size: Literal["small", "paper"] = flag("small", "small trains on 2 cores in minutes; paper has the papers' sizes.")
    max_documents: int | None = flag(None, "Labelled notes at most, a random sample (small: 5000, paper: all).", ge=20)
    max_tokens: int | None = flag(None, "Networks read so many words of a note (small: 200, paper: 5000).", ge=5)
    epochs: int | None = flag(None, "Passes of a network (small: 20, early end; paper: 25).", ge=1, le=1000)
    features: Literal["tfidf", "hashed"] = flag("tfidf", "Linear models: TF-IDF, or hashed features in bounded memory.")
    static: bool = flag(False, "Networks leave the word vectors as they are given.")
    refit: bool = flag(False, "Networks: train anew on training and validation notes for the epochs found best.")
    min_class: int = flag(50, "Classes of fewer notes are left out.", ge=2)
    separator: str | None = flag(None, "What stands between several labels of one note; without it one label a note.")
    device: str = flag("cpu", "cpu, cuda or cuda:1, for networks.")

    @property
    def documents(self) -> int:
        """Labelled notes at most."""
        return self.max_documents or (5_000 if self.size == "small" else 10**9)

    @property
    def tokens(self) -> int:
        """Words of a note that networks read."""
        return self.max_tokens or (200 if self.size == "small" else 5_000)

    @property
    def passes(self) -> int:
        """Epochs at most."""
        return self.epochs or (20 if self.size == "small" else 25)
