"""Synthetic notes with patient-level differential privacy: one Gaussian release of word counts,
then post-processing.

The neighbouring relation is adding or removing all notes of one patient. Vocabulary and n-grams
come from public text.
"""
