"""How this room compiles: numba without the interpreter's lock, and without a cache.

A cache would spare some seconds a run, but numba's cache files are pickles beside the source or in the home folder.
Helpers get no entry from Python, which halves what there is to compile. Nothing compiled here allocates arrays, so
they need no reference counts, which would cost more than the work itself.
"""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.core.cgutils import get_item_pointer
from numba.extending import intrinsic

compiled = njit(nogil=True, no_cfunc_wrapper=True, _nrt=False)
compiled_helper = njit(nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=True, _nrt=False)


@intrinsic
def store_eight(_: Any, buffer: Any, at: Any, chunk: Any) -> Any:
    """store_eight(buffer, at, chunk): the little-endian bytes of a uint64 into a uint8 array, in one instruction."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        array = context.make_array(array_type)(context, builder, arguments[0])
        place = get_item_pointer(context, builder, array_type, array, [arguments[1]])
        wide = context.get_value_type(types.CPointer(types.uint64))
        builder.store(arguments[2], builder.bitcast(place, wide), align=1)
        return context.get_dummy_value()

    return types.void(buffer, types.intp, types.uint64), code
