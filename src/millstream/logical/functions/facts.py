"""Facts about the values of a function, declared with the function.

By default a function may fail, be NULL, have any value of its type, and distinguish 0.0 from -0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from millstream.logical.functions.ranges import Range, RangeOf


class Argument(Protocol):
    """What is known about an argument of a call."""

    @property
    def type(self) -> pa.DataType: ...

    @property
    def range(self) -> Range | None:
        """The range of its values, if they are integers."""

    @property
    def value(self) -> object:
        """The value of a constant; `...` for others."""


NullIf = Callable[[Iterable[bool]], bool]


def unknown(nulls: Iterable[bool]) -> bool:
    return True


def never(nulls: Iterable[bool]) -> bool:
    return False


@dataclass(frozen=True)
class FunctionFacts:
    """What is true for all values of the arguments."""

    #: It never fails: always, or if `total(result type, *arguments)` is true.
    total: bool | Callable[..., bool] = False
    #: The result is NULL only if `any` argument is, only if `all` are, or `never`.
    null_if: NullIf = unknown
    #: Results that are integers lie in this range, or in `range(*ranges of the arguments)`.
    range: Range | RangeOf | None = None
    #: Equal arguments give equal results: it does not distinguish 0.0 from -0.0.
    steady: bool = False

    def is_total(self, result: pa.DataType, arguments: Iterable[Argument]) -> bool:
        return self.total if isinstance(self.total, bool) else self.total(result, *arguments)

    def range_of(self, ranges: Iterable[Range | None]) -> Range | None:
        return self.range(*ranges) if callable(self.range) else self.range


NOTHING = FunctionFacts()
STEADY = FunctionFacts(null_if=any, steady=True)
PLAIN = FunctionFacts(total=True, null_if=any, steady=True)
NEVER_NULL = FunctionFacts(total=True, null_if=never, steady=True)
MAYBE_NULL = FunctionFacts(total=True, steady=True)
LENGTH = FunctionFacts(total=True, null_if=any, range=Range(0, 2**31 - 1), steady=True)
