"""Machine code, made of LLVM's language while a query runs.

Kernels that are the same for all queries are Numba's, which keeps them on disk. What differs from
query to query must be there within milliseconds: LLVM, which comes with Numba, takes a few for
what is written in its own language with vectors already, so that nothing is left to optimize.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import PYFUNCTYPE, c_int64

from llvmlite import binding


class MachineCode:
    """A function of integers whose value is one. Its memory is freed with this object: whoever
    keeps `call` keeps the object."""

    def __init__(self, text: str, name: str, arity: int) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten()
        )
        module = binding.parse_assembly(text)
        module.triple = machine.triple
        self._engine = binding.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        kind = PYFUNCTYPE(c_int64, *[c_int64] * arity)
        self.call: Callable[..., int] = kind(self._engine.get_function_address(name))
