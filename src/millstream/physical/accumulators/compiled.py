"""Compiles kernels that modify their argument arrays and allocate none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core.options import DefaultOptions

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# Numba counts the references to an array whenever an inlined function or a tuple passes it on. For
# loops over linked slabs this takes half of the time, and it is useless where no array is allocated
# or freed. The option is not public: if a version lacks it, kernels are only slower.
_WITHOUT_COUNTING: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def in_place(kernel: Kernel) -> Kernel:
    """Compile a function that neither allocates nor returns arrays."""
    compiled: Kernel = njit(cache=True, **_WITHOUT_COUNTING)(kernel)
    return compiled
