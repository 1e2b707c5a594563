"""Map a function over batches or tasks, with the same ordered results for every executor.

A `Map` takes a function and items and yields the results in the order of the items.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
