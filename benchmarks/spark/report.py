"""The results as a text table."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.spark.contest import Entry, Result
from benchmarks.spark.processes import KINDS

_HEADING = (
    f"  {'':36}{'batch':>10}{'batches':>9}{'seconds':>9}{'rows/s':>12}{'times':>8}"
    f"{'rows/s':>14}{'times':>8}   processor seconds a batch"
)
_SECOND = f"  {'':36}{'rows':>10}{'':>9}{'median':>9}{'by clock':>12}{'':>8}{'of processor':>14}"


def text(result: Result) -> str:
    return "\n".join(_lines(result))


def _lines(result: Result) -> Iterator[str]:
    workload = result.workload
    yield f"{workload.name}: {workload.title}"
    yield _HEADING
    yield _SECOND
    for entry in result.entries:
        yield _line(entry, result.entries[0])
    if result.refusal is not None:
        yield f"  Spark refuses: {result.refusal}"
    yield f"  durability takes {result.durability:.0%} of Millstream's time"
    yield f"  {_verdict(result)}"


def _line(entry: Entry, first: Entry) -> str:
    m = entry.measured
    by_clock = first.measured.rate / m.rate
    by_processor = first.measured.processor_rate / m.processor_rate
    used = ", ".join(
        f"{kind} {m.processors[kind] / m.batches:.2f}" for kind in KINDS if m.processors[kind]
    )
    return (
        f"  {entry.name:36}{m.rows:>10,}{m.batches:>9}{median(m.seconds):>9.2f}{m.rate:>12,.0f}"
        f"{by_clock:>8.2f}{m.processor_rate:>14,.0f}{by_processor:>8.2f}   {used}"
    )


def _verdict(result: Result) -> str:
    word = "holds" if result.holds else "MISSED"
    times = result.times(lambda measured: measured.rate)
    if times is None:
        return f"{result.rate:,.0f} rows/s, at least {result.workload.rate:,.0f}: {word}"
    by_processor = result.times(lambda measured: measured.processor_rate)
    return (
        f"{times:.1f} times the better of Spark's, at least {result.workload.times:.0f}: {word} "
        f"({by_processor:.1f} times in processor time)"
    )
