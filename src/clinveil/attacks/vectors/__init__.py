"""Attacks that use released word vectors."""
