"""Machine code, made of LLVM's language while a query runs.

Kernels that are the same for all queries are Numba's, which keeps them on disk. What differs from
query to query must be there within milliseconds: LLVM, which comes with Numba, takes a few for
what is written in its own language with vectors already, so that nothing is left to optimize.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import PYFUNCTYPE, c_int64
from functools import cache
from itertools import count
from typing import Any

from llvmlite import binding, ir

_numbers = count()


def new_module() -> ir.Module:
    """Where a function is to be written, for this machine."""
    module = ir.Module()
    module.triple = binding.get_process_triple()
    return module


class MachineCode:
    """A function of integers whose value is one. Its memory is freed with this object: whoever
    keeps `call` keeps the object."""

    def __init__(self, module: ir.Module, name: str, arity: int) -> None:
        library = binding.JITLibraryBuilder().add_ir(str(module)).export_symbol(name)
        self._memory = library.link(_compiler(), f"{name} {next(_numbers)}")
        kind = PYFUNCTYPE(c_int64, *[c_int64] * arity)
        self.call: Callable[..., int] = kind(self._memory[name])


@cache
def _compiler() -> Any:
    """One for all: another takes almost a megabyte."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=_features(), jit=True
    )
    return binding.create_lljit_compiler(machine)


def _features() -> str:
    """What this processor can do; nothing beyond its kind where that cannot be found out."""
    try:
        return str(binding.get_host_cpu_features().flatten())
    except RuntimeError:
        return ""
