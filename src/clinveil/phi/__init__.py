"""Identifiers in notes: detectors (one kind of identifier a file), known patients, overlap, policy, surrogates.

What the detectors miss is measured, not promised: see `benchmarks/phi.py`.
"""
