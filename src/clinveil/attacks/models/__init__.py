"""Attacks on a language model, or on the text that it generated."""
