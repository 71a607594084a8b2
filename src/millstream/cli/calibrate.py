"""`millstream calibrate`: what operations cost on this machine, for `explain --costs`."""

from __future__ import annotations

import sys

from millstream.cli.progress import progress
from millstream.optimizer.cost.work import Primitive, calibration_file


def calibrate() -> None:
    """Measure, write the constants to the user's settings, and print them."""
    from millstream.optimizer.cost.calibration import calibrate as measured

    told = "measuring"

    def tell(done: int, all: int) -> None:
        nonlocal told
        told = f"measuring: {done} of {all} queries"

    with progress(lambda: told):
        constants = measured(tell)
    path = calibration_file()
    constants.write(path)
    for primitive in Primitive:
        print(f"{primitive.value:<12} {constants.primitives[primitive]:>12,.1f} ns")
    for operator, nanoseconds in constants.batches.items():
        print(f"{operator:<12} {nanoseconds:>12,.0f} ns a batch")
    print(f"written to {path}", file=sys.stderr)
