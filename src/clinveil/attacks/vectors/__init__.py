"""Attacks of those who hold word vectors."""
