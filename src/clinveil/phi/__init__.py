"""Detection and treatment of identifiers: detectors, known patients, overlap resolution, policies,
surrogates.

`benchmarks/phi.py` measures the identifiers that the detectors miss.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
