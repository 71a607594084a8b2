"""Millstream and its peers on the same work.

python -m benchmarks                          everything
python -m benchmarks join distinct --size 0.1 --all-forms
python -m benchmarks flat memory latency      the bounds on our own operators
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import flat, latency, memory
from benchmarks.contest import contenders, measure
from benchmarks.report import as_json, text
from benchmarks.workloads import WORKLOADS

# Bounds on our own operators; each prints what it measured, and what it misses.
BOUNDS = {"flat": flat.report, "memory": memory.report, "latency": latency.report}


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    for name in set(options.workload) - {*WORKLOADS, *BOUNDS}:
        there = ", ".join([*WORKLOADS, *BOUNDS])
        parser.error(f'workload "{name}" does not exist; there are {there}')
    who = contenders(options.contender)
    if not who:
        names = ", ".join(contender.NAME for contender in contenders())
        parser.error(f"no such contender; there are {names}")
    outcomes = []
    chosen = options.workload or [*WORKLOADS, *BOUNDS]
    for name in chosen:
        if name in BOUNDS:
            continue
        workload = WORKLOADS[name](options.size)
        outcome = measure(workload, who, repeat=options.repeat, all_forms=options.all_forms)
        print(text(outcome), end="\n\n", flush=True)
        outcomes.append(outcome)
    for name in chosen:
        if name in BOUNDS:
            BOUNDS[name]()
            print(flush=True)
    if options.json:
        options.json.write_text(json.dumps(as_json(outcomes), indent=2) + "\n")
    return 0 if all(outcome.agreed for outcome in outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workload", nargs="*", help="all by default")
    parser.add_argument("--size", type=float, default=1.0, help="of the data, 1 by default")
    parser.add_argument("--repeat", type=int, default=3, help="the median of so many counts")
    parser.add_argument(
        "--contender", action="append", default=[], help="only this one; repeatable"
    )
    parser.add_argument(
        "--all-forms", action="store_true", help="also the slower ways of the peers"
    )
    parser.add_argument("--json", type=Path, help="write what was measured to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
