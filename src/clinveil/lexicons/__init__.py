"""Word lists (names with frequencies, eponyms, clinical and common words, places), loaded on first
use.
"""
