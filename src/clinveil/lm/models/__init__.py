"""Kinds of language models, one per file, each registered with its sizes and a description."""
