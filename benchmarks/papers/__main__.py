"""The numbers and figures of A and G3, the papers' next to Millstream's.

python -m benchmarks.papers [--quick] [--to build/papers]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.papers import multi_joins, static_optimization
from benchmarks.papers.numbers import as_json, as_text


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer queries and rows")
    parser.add_argument("--to", type=Path, default=Path("build/papers"), help="the folder")
    options = parser.parse_args(arguments)
    found = static_optimization.report(options.quick) + multi_joins.report(options.quick)
    options.to.mkdir(parents=True, exist_ok=True)
    for chart in found.charts:
        (options.to / f"{chart.name}.svg").write_text(chart.svg())
    text = json.dumps(as_json(found), indent=2, ensure_ascii=False)
    (options.to / "papers.json").write_text(text + "\n")
    print(as_text(found.numbers))
    print(f"\n{len(found.charts)} pictures and papers.json are in {options.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
