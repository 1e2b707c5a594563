"""Attacks, one a file: the listing is the threat model."""
