"""Ships user functions to worker processes, as Spark ships closures.

They need not be importable there. Nothing else is pickled: plans, messages and states are data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from millstream.logical.evaluate import UserAggregate, UserFunction

Shipped: TypeAlias = tuple[Mapping[str, UserFunction], Mapping[str, UserAggregate]]


def shipped(
    functions: Mapping[str, UserFunction], aggregates: Mapping[str, UserAggregate]
) -> bytes:
    """Empty if there are none."""
    from pyspark import cloudpickle

    if not functions and not aggregates:
        return b""
    data: bytes = cloudpickle.dumps((functions, aggregates))  # type: ignore[no-untyped-call]
    return data


def unshipped(data: bytes) -> Shipped:
    """The data comes from the process that started this one, in a file private to the user."""
    if not data:
        return {}, {}
    from pyspark import cloudpickle

    found: Shipped = cloudpickle.loads(data)
    return found
