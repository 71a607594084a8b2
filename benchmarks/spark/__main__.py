"""Millstream on Spark compared with Spark's own operators.

python -m benchmarks.spark                    everything, about half an hour on two cores
python -m benchmarks.spark join hopping       some workloads
python -m benchmarks.spark first growth       time to the first answer; batches and larger state
python -m benchmarks.spark --quick            little data, few batches
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.spark import first, growth
from benchmarks.spark.contenders import spark_session
from benchmarks.spark.contest import QUICK, Extent, contest
from benchmarks.spark.report import text
from benchmarks.spark.workloads import WORKLOADS

_MORE = ("first", "growth")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", nargs="*", help=f"of {', '.join([*WORKLOADS, *_MORE])}")
    parser.add_argument("--quick", action="store_true", help="little data, few batches")
    options = parser.parse_args(arguments)
    for name in set(options.part) - {*WORKLOADS, *_MORE}:
        parser.error(f'"{name}" is not measured; there are {", ".join([*WORKLOADS, *_MORE])}')
    parts = options.part or [*WORKLOADS, *_MORE]
    if "first" in parts:
        first.report()
    held = True
    for name in [name for name in parts if name in WORKLOADS]:
        result = contest(spark_session(), WORKLOADS[name], QUICK if options.quick else Extent())
        print(text(result), end="\n\n", flush=True)
        held &= result.holds
    if "growth" in parts:
        held &= growth.report(spark_session(), options.quick)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
