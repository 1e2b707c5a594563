"""Attacks that use the channel of a release, and the adversary suite."""
