"""Attacks of those who hold a language model, or text that it wrote."""
