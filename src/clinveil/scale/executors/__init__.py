"""Executors, one per file."""
