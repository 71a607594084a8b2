"""Millstream and its peers on the same work.

python -m benchmarks                          everything, about five minutes
python -m benchmarks join distinct --size 0.1 --all-forms
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.contest import contenders, measure
from benchmarks.report import as_json, text
from benchmarks.workloads import WORKLOADS


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    for name in set(options.workload) - set(WORKLOADS):
        parser.error(f'workload "{name}" does not exist; there are {", ".join(WORKLOADS)}')
    who = contenders(options.contender)
    if not who:
        names = ", ".join(contender.NAME for contender in contenders())
        parser.error(f"no such contender; there are {names}")
    outcomes = []
    for name in options.workload or WORKLOADS:
        workload = WORKLOADS[name](options.size)
        outcome = measure(workload, who, repeat=options.repeat, all_forms=options.all_forms)
        print(text(outcome), end="\n\n", flush=True)
        outcomes.append(outcome)
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
