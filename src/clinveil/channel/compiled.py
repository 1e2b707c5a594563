"""How this room compiles: numba without the interpreter's lock, and without a cache.

A cache would spare some seconds a run, but numba's cache files are pickles beside the source or in the home folder.
Helpers get no entry from Python, which halves what there is to compile.
"""

from __future__ import annotations

from numba import njit

compiled = njit(nogil=True, no_cfunc_wrapper=True, _nrt=False)
compiled_helper = njit(nogil=True, no_cfunc_wrapper=True, _nrt=False, no_cpython_wrapper=True)
