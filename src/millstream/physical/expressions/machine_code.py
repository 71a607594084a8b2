"""Machine code, made of LLVM's language while a query runs.

Kernels that are the same for all queries are Numba's, which keeps them on disk. What differs from
query to query must be there within milliseconds: LLVM, which comes with Numba, takes a few for
what is written in its own language with vectors already, so that nothing is left to optimize.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable
from ctypes import PYFUNCTYPE, c_int64
from functools import cache
from itertools import count
from threading import Lock
from typing import Any

from llvmlite import binding, ir

WORD = ir.IntType(64)

_numbers = count()

# A process that is forked while another thread makes code would find LLVM locked for ever.
_making = Lock()
os.register_at_fork(
    before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release
)


class MachineCode:
    """A function of words: it is given their address in memory, and its value is a word. The code
    is freed with this object."""

    def __init__(self, module: ir.Module, name: str) -> None:
        with _making:
            self._memory, address = _made(module, name)
        self._call: Callable[[int], int] = PYFUNCTYPE(c_int64, c_int64)(address)

    def call(self, words: Iterable[int]) -> int:
        memory = array("q", words)
        return self._call(memory.buffer_info()[0])


def _made(module: ir.Module, name: str) -> tuple[Any, int]:
    """What holds the memory of the code, and where the function is."""
    module.triple = binding.get_process_triple()
    library = binding.JITLibraryBuilder().add_ir(str(module)).export_symbol(name)
    memory = library.link(_compiler(), f"{name} {next(_numbers)}")
    return memory, memory[name]


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
