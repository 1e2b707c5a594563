"""Detection and treatment of identifiers: detectors, known patients, overlap resolution, policies,
surrogates.

`benchmarks/phi.py` measures the identifiers that the detectors miss.
"""
