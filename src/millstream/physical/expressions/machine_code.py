"""Machine code, compiled from LLVM IR while a query runs.

Kernels shared by all queries use Numba, which caches them on disk. Code that differs per query must
be ready within milliseconds: LLVM, which comes with Numba, takes a few for vectorized IR that needs
no further optimization.
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

# A process forked while another thread compiles would find LLVM locked forever.
_making = Lock()
os.register_at_fork(
    before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release
)


class MachineCode:
    """A function that takes the address of an array of words and returns a word. The code is freed
    with this object."""

    def __init__(self, module: ir.Module, name: str) -> None:
        with _making:
            self._memory, address = _made(module, name)
        self._call: Callable[[int], int] = PYFUNCTYPE(c_int64, c_int64)(address)

    def call(self, words: Iterable[int]) -> int:
        memory = array("q", words)
        return self._call(memory.buffer_info()[0])


def _made(module: ir.Module, name: str) -> tuple[Any, int]:
    """The owner of the code's memory, and the function's address."""
    module.triple = binding.get_process_triple()
    library = binding.JITLibraryBuilder().add_ir(str(module)).export_symbol(name)
    memory = library.link(_compiler(), f"{name} {next(_numbers)}")
    return memory, memory[name]


@cache
def _compiler() -> Any:
    """Shared, since each compiler takes almost a megabyte."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=_features(), jit=True
    )
    return binding.create_lljit_compiler(machine)


def _features() -> str:
    """The features of this processor; empty if they cannot be detected."""
    try:
        return str(binding.get_host_cpu_features().flatten())
    except RuntimeError:
        return ""
