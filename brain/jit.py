"""The one way to compile a kernel: cached, without the interpreter lock, IEEE arithmetic.

No fastmath: a kernel that may assume "no NaN" lets a NaN configuration pass as free.
A kernel has no default arguments: with more than one variant compiled, each call that leaves one
out is resolved in Python, which takes 400 us.
`NUMBA_DISABLE_JIT=1` turns every kernel back into plain Python (coverage and mutation runs do so).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

# numba's cache looks only at the file that a kernel stands in, and would serve a stale one after a
# change in a module that it uses: keep kernels only in a folder that all of their sources name.
KEPT = "forearm-kernels-" in numba.config.CACHE_DIR
P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba on first use; division by zero gives inf or NaN as in numpy."""
    jit = numba.njit(cache=KEPT, nogil=True, error_model="numpy")
    return cast(Callable[P, R], jit(function))


def lean_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that allocates nothing and returns only numbers, without reference counts.

    Numba counts references to every array and view with atomic operations; in kernels that look at
    one shape or sphere at a time they cost several times the arithmetic. An allocation inside does
    not compile.
    """
    jit = numba.njit(cache=KEPT, nogil=True, error_model="numpy", _nrt=False)
    return cast(Callable[P, R], jit(function))


def inline_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a lean kernel that is always built into its callers.

    For inner loops over many arrays: handing over their descriptions costs more than a short body.
    """
    jit = numba.njit(cache=KEPT, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
    return cast(Callable[P, R], jit(function))
