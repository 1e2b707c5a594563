"""Text classifiers of paper A: linear models on TF-IDF, and networks on word vectors (extra `[neural]`)."""

from __future__ import annotations

LINEAR = ("lr", "svm")
NEURAL = ("cnn", "cnn-attention", "lstm", "lstm-attention")
MODELS = LINEAR + NEURAL
