"""Kinds of release, one file each."""
