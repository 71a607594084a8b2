"""`millstream calibrate`: the cost of operations on this machine, for `explain --costs`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from millstream.cli.progress import progress
from millstream.model.modes import EngineName
from millstream.optimizer.cost.work import (
    Constants,
    Handling,
    Primitive,
    calibration_file,
    known_constants,
)


def calibrate(engine: EngineName) -> None:
    """Measure, write the constants to the user's settings, and print them."""
    told = "measuring"

    def tell(done: int, all: int) -> None:
        nonlocal told
        told = f"measuring: {done} of {all} queries"

    with progress(lambda: told):
        constants = _on_spark(tell) if engine is EngineName.SPARK else _here(tell)
    path = calibration_file()
    constants.write(path)
    if engine is EngineName.SPARK:
        for handling in Handling:
            print(f"{handling.value:<12} {constants.spark[handling]:>15,.1f} ns")
    else:
        for primitive in Primitive:
            print(f"{primitive.value:<12} {constants.primitives[primitive]:>12,.1f} ns")
        for operator, nanoseconds in constants.batches.items():
            print(f"{operator:<12} {nanoseconds:>12,.0f} ns per batch")
    print(f"written to {path}", file=sys.stderr)


def _here(tell: Callable[[int, int], None]) -> Constants:
    """Measure the operators; the measurements of Spark are kept."""
    from millstream.api.calibration import calibrate as measured

    return replace(measured(tell), spark=known_constants().spark)


def _on_spark(tell: Callable[[int, int], None]) -> Constants:
    from millstream.api.spark_calibration import calibrate as measured

    return replace(known_constants(), spark=measured(tell))
