"""The results as a text table and as JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any

from benchmarks.contest import Entry, Outcome, contenders, measure
from benchmarks.workloads import WORKLOADS

HEADINGS = ("contender", "form", "seconds", "rows/s", "of DuckDB", "Millstream", "rows out", "")


@dataclass(frozen=True)
class Measured:
    """The result of a workload: as a table, as JSON, and whether all answers agree."""

    table: str
    json: dict[str, Any]
    agreed: bool


def apart(
    name: str, size: float, who: Sequence[str], repeat: int | None, all_forms: bool
) -> Measured:
    """A workload in its own process: plain Python is slower if others have fragmented the
    memory."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_measured, name, size, who, repeat, all_forms).result()


def _measured(
    name: str, size: float, who: Sequence[str], repeat: int | None, all_forms: bool
) -> Measured:
    workload = WORKLOADS[name](size)
    outcome = measure(workload, contenders(who), repeat=repeat, all_forms=all_forms)
    return Measured(text(outcome), as_json(outcome), outcome.agreed)


def text(outcome: Outcome) -> str:
    """A table: each rate, as a multiple of DuckDB's, and Millstream's as a multiple of each."""
    workload = outcome.workload
    lines = [HEADINGS, *(_line(entry, outcome) for entry in outcome.entries)]
    lines += [(name, "not there", *[""] * (len(HEADINGS) - 2)) for name in outcome.absent]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    table = [f"{workload.name}: {workload.title} ({workload.rows:,} rows)"]
    for line in lines:
        cells = [
            c.ljust(w) if i in (0, 1, 7) else c.rjust(w) for i, (c, w) in _numbered(line, widths)
        ]
        table.append("  " + "  ".join(cells).rstrip())
    return "\n".join(table)


def _numbered(line: Sequence[str], widths: Sequence[int]) -> list[tuple[int, tuple[str, int]]]:
    return list(enumerate(zip(line, widths, strict=True)))


def _line(entry: Entry, outcome: Outcome) -> tuple[str, ...]:
    part = entry.rows_in / outcome.workload.rows
    form = entry.form.name + (f", {part:.0%} of the rows" if part < 1 else "")
    return (
        entry.contender,
        form,
        f"{statistics.median(entry.seconds):.3f}",
        f"{entry.rate:,.0f}",
        _multiple(entry.rate, _best(outcome, "DuckDB")),
        _multiple(_best(outcome, "Millstream"), entry.rate),
        f"{entry.rows_out:,}",
        entry.verdict,
    )


def _best(outcome: Outcome, contender: str) -> float | None:
    """The best rate of a contender's exact forms."""
    rates = [e.rate for e in outcome.entries if e.contender == contender and e.form.exact]
    return max(rates, default=None)


def _multiple(rate: float | None, of: float | None) -> str:
    return "" if rate is None or of is None else f"{rate / of:.2f}×"


def machine() -> dict[str, Any]:
    packages = {name: version(name) for name in ("duckdb", "polars", "pyarrow", "numpy")}
    return {"cores": os.cpu_count(), "python": platform.python_version(), **packages}


def as_json(outcome: Outcome) -> dict[str, Any]:
    entries = [
        {
            "contender": entry.contender,
            "form": entry.form.name,
            "exact": entry.form.exact,
            "rows_in": entry.rows_in,
            "rows_out": entry.rows_out,
            "seconds": entry.seconds,
            "rows_per_second": entry.rate,
            "verdict": entry.verdict,
        }
        for entry in outcome.entries
    ]
    workload = outcome.workload
    return {
        "name": workload.name,
        "title": workload.title,
        "sql": workload.sql,
        "rows": workload.rows,
        "entries": entries,
        "absent": outcome.absent,
    }
