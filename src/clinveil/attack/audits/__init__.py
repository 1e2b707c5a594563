"""Audits of a language model, or of its synthetic notes alone: canaries and membership."""
