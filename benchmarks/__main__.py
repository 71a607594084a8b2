"""Millstream and its peers on the same work, the bounds on its operators, and the papers' plans.

python -m benchmarks                          everything, about a quarter of an hour
python -m benchmarks --quick                  everything, on little data
python -m benchmarks join distinct --size 0.1 --all-forms
python -m benchmarks flat batches memory latency     the bounds on our own operators
python -m benchmarks relations                lookups and changes of a table, and their bounds
python -m benchmarks wins                     who wins when, as G5 and K compare plans
python -m benchmarks estimates                the cost model against what queries do
python -m benchmarks run                      what `run` costs beside `start`, on NEXMark
python -m benchmarks gain planning            what the choice by cost gains, how long it takes
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import (
    estimates,
    flat,
    flat_batches,
    gain,
    latency,
    memory,
    planning,
    relations,
    run_and_start,
)
from benchmarks.contest import contenders
from benchmarks.papers import intervals_or_signs, who_wins
from benchmarks.report import apart, machine
from benchmarks.workloads import WORKLOADS

QUICK = 0.05  # of the data


def _wins(quick: bool) -> None:
    who_wins.report(quick)
    intervals_or_signs.report(quick)


# On Millstream's operators; each prints its results and the bounds it misses.
REPORTS: Mapping[str, Callable[[bool], object]] = {
    "flat": lambda quick: flat.report(small=flat.SMALL // 5 if quick else flat.SMALL),
    "batches": lambda quick: flat_batches.report(sizes=flat_batches.SIZES[: 3 if quick else 4]),
    "memory": lambda quick: memory.report(),
    "latency": lambda quick: latency.report(),
    "relations": relations.report,
    "run": run_and_start.report,
    "wins": _wins,
    "estimates": estimates.report,
    "gain": gain.report,
    "planning": planning.report,
}


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    for name in set(options.workload) - {*WORKLOADS, *REPORTS}:
        there = ", ".join([*WORKLOADS, *REPORTS])
        parser.error(f'workload "{name}" does not exist; there are {there}')
    if not contenders(options.contender):
        names = ", ".join(contender.NAME for contender in contenders())
        parser.error(f"no such contender; there are {names}")
    chosen = options.workload or [*WORKLOADS, *REPORTS]
    measured = []
    for name in [name for name in chosen if name in WORKLOADS]:
        size = QUICK if options.quick else options.size
        measured.append(apart(name, size, options.contender, options.repeat, options.all_forms))
        print(measured[-1].table, end="\n\n", flush=True)
    for name in [name for name in chosen if name in REPORTS]:
        REPORTS[name](options.quick)
        print(flush=True)
    if options.json:
        written = {"machine": machine(), "workloads": [one.json for one in measured]}
        options.json.write_text(json.dumps(written, indent=2) + "\n")
    return 0 if all(one.agreed for one in measured) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    there = ", ".join([*WORKLOADS, *REPORTS])
    parser.add_argument("workload", nargs="*", help=f"all by default, of {there}")
    parser.add_argument("--size", type=float, default=1.0, help="share of the data, 1 by default")
    parser.add_argument("--quick", action="store_true", help="little data, shorter windows")
    parser.add_argument(
        "--repeat", type=int, help="report the median of this many runs; 3 to 15 by default"
    )
    parser.add_argument(
        "--contender", action="append", default=[], help="only this one; repeatable"
    )
    parser.add_argument(
        "--all-forms", action="store_true", help="also run the slower forms of the peers"
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
