"""Times the contenders of a workload and compares their answers.

All contenders of a workload are timed in turn in one process, so that other load on the machine
affects them alike; the result is the median, after two warm-up runs. Short runs are repeated more
often. Loading data into a peer's tables is not timed, nor is converting its answer to Arrow for the
comparison. The garbage collector ignores objects from before the runs: a program with one contender
would not have them.
"""

from __future__ import annotations

import gc
import importlib
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from benchmarks.answers import checksum
from benchmarks.contenders import duckdb_sql, plain_python, polars_frames
from benchmarks.contenders.form import Form
from benchmarks.workloads import BATCH, Workload

# A module with `prepare`, `run` and `answer`: the columns that the workload names, valid_from and
# valid_to, of the whole of `workload.batches()`. Only `run` is timed.
MILLSTREAM = "benchmarks.contenders.millstream"

SECONDS = 5.0  # total time of the repeated runs
LEAST_ROUNDS, MOST_ROUNDS = 3, 15
TRIAL_ROUNDS = 2  # the second may still allocate memory


class Contender(Protocol):
    """The interface of a module in `contenders`."""

    NAME: str
    SHARE: float  # of the data it gets
    FORMS: Mapping[str, Sequence[Form]]  # by workload, the fastest first

    def prepare(self, workload: Workload) -> Any: ...

    def answer(self, result: Any) -> pa.Table: ...


class Millstream:
    """Millstream itself, if available."""

    NAME = "Millstream"
    SHARE = 1.0

    def __init__(self) -> None:
        self._module = module = (
            importlib.import_module(MILLSTREAM) if find_spec(MILLSTREAM) else None
        )
        self.FORMS: Mapping[str, Sequence[Form]] = _Always(
            [Form("batches of 10,000", module.run)] if module else []
        )

    def prepare(self, workload: Workload) -> Any:
        return self._module.prepare(workload)

    def answer(self, result: Any) -> pa.Table:
        return self._module.answer(result)


class _Always(dict[str, Sequence[Form]]):
    """The same forms for every workload."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self.forms = forms

    def __missing__(self, workload: str) -> Sequence[Form]:
        return self.forms


def contenders(names: Iterable[str] = ()) -> list[Contender]:
    """Those named, or all; names in any case."""
    everyone: list[Any] = [Millstream(), duckdb_sql, polars_frames, plain_python]
    wanted = {name.lower() for name in names}
    return [c for c in everyone if not wanted or c.NAME.lower() in wanted]


@dataclass
class Entry:
    """One form of one contender, and its result."""

    contender: str
    form: Form
    rows_in: int
    seconds: list[float] = field(default_factory=list)
    rows_out: int = 0
    verdict: str = ""  # "same answer", "not compared", or what went wrong

    @property
    def rate(self) -> float:
        """Input rows per second."""
        return self.rows_in / statistics.median(self.seconds)


@dataclass(frozen=True)
class Outcome:
    workload: Workload
    entries: list[Entry]
    absent: list[str]

    @property
    def agreed(self) -> bool:
        return not any(entry.verdict.startswith("WRONG") for entry in self.entries)


@dataclass
class _Run:
    contender: Contender
    entry: Entry
    prepared: Any
    share: Workload
    result: Any = None


def measure(
    workload: Workload,
    who: Sequence[Contender],
    *,
    repeat: int | None = None,
    all_forms: bool = False,
) -> Outcome:
    """Time every contender `repeat` times, or for some seconds, and compare the answers."""
    runs: list[_Run] = []
    for contender in who:
        share = workload if contender.SHARE == 1 else workload.share(contender.SHARE)
        forms = contender.FORMS[workload.name]
        prepared = contender.prepare(share) if forms else None
        for form in [f for f in forms if all_forms or f is forms[0] or f.always]:
            runs.append(_Run(contender, Entry(contender.NAME, form, share.rows), prepared, share))
    for run in runs * TRIAL_ROUNDS:
        _time(run)
    for run in runs:
        run.entry.seconds.clear()
    gc.freeze()
    try:
        for _ in _rounds() if repeat is None else range(repeat):
            for run in runs:
                _time(run)
    finally:
        gc.unfreeze()
    _compare(runs)
    absent = [c.NAME for c in who if not any(run.contender is c for run in runs)]
    return Outcome(workload, [run.entry for run in runs], absent)


def _rounds() -> Iterator[int]:
    began = time.perf_counter()
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() - began >= SECONDS:
            return
        yield number


def _time(run: _Run) -> None:
    run.result = None
    gc.collect()
    np.empty(BATCH)  # a larger allocation consolidates freed memory
    begin = time.perf_counter()
    run.result = run.entry.form.run(run.prepared)
    run.entry.seconds.append(time.perf_counter() - begin)


def _compare(runs: list[_Run]) -> None:
    """Answers must equal that of DuckDB's fastest form on the same share of the data."""
    expected: dict[int, tuple[int, int]] = {}
    for run in runs:
        table = run.contender.answer(run.result)
        run.entry.rows_out = len(table)
        if not run.entry.form.exact:
            run.entry.verdict = "not compared"
            continue
        rows = run.share.rows
        if rows not in expected:
            expected[rows] = _judged(run.share)
        checked, number = expected[rows]
        if checksum(table, run.share.columns) != checked:
            run.entry.verdict = f"WRONG: {number:,} rows expected, or other ones"
        else:
            same = len(table) == number
            run.entry.verdict = "same answer" if same else "same answer, cut otherwise"


def _judged(workload: Workload) -> tuple[int, int]:
    judge = duckdb_sql.FORMS[workload.name][0]
    table = judge.run(duckdb_sql.prepare(workload))
    return checksum(table, workload.columns), len(table)
