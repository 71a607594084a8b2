"""Estimates as text and as JSON: the output, state and cost of each operator of a plan."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.model.time import TimeDomain
from millstream.optimizer.cost.estimate import Estimate, Estimates
from millstream.physical.operator import Pattern, PhysicalPlan
from millstream.physical.operators.source import Source
from millstream.physical.signature import Signatures
from millstream.physical.text import SharedNodes, properties

_HEADINGS = ("rate", "valid", "rows", "memory", "processor")


def costs_text(estimates: Estimates) -> str:
    """One line per operator, its inputs indented below it, and one for the whole plan; then the
    defaults that the estimates use."""
    lines = [
        (_HEADINGS, "operator"),
        *_lines(estimates, estimates.plan, 0, SharedNodes(estimates.plan)),
    ]
    lines += _engine_lines(estimates)
    lines.append((_total(estimates), "in all"))
    widths = [max(len(cells[i]) for cells, _ in lines) for i in range(len(_HEADINGS))]
    told = [
        "  ".join([*(c.rjust(w) for c, w in zip(cells, widths, strict=True)), operator])
        for cells, operator in lines
    ]
    if assumed := list(assumptions(estimates)):
        told += ["", "assumed by default: " + "; ".join(assumed)]
    return "\n".join(told)


def _lines(
    estimates: Estimates, node: PhysicalPlan, level: int, shared: SharedNodes
) -> Iterator[tuple[tuple[str, ...], str]]:
    margin = "  " * level
    if shared.is_known(node):
        yield ("", "", "", "", ""), f"{margin}Shared {shared.name(node)}"
        return
    told = properties(node, estimates.statistics.domain)
    if shared.is_shared(node):
        told["shared"] = shared.name(node)
    words = [type(node).__name__, *(f"{key}={value}" for key, value in told.items())]
    yield _cells(estimates, node), margin + " ".join(words)
    for child in node.inputs:
        yield from _lines(estimates, child, level + 1, shared)


def _engine_lines(estimates: Estimates) -> Iterator[tuple[tuple[str, ...], str]]:
    """The overhead of the engine; rows are counted in values."""
    second, domain = estimates.statistics.second, estimates.statistics.domain
    for each in estimates.engine:
        rate = rate_text(each.count * second, domain)
        yield (rate, "", "", "", cost_text(each.cost * second, domain)), each.name


def _cells(estimates: Estimates, node: PhysicalPlan) -> tuple[str, ...]:
    own, domain = estimates[node], estimates.statistics.domain
    second = estimates.statistics.second
    return (
        rate_text(own.output.elements * second, domain),
        "forever" if node.pattern is Pattern.MONOTONIC else span_text(own.output.length, domain),
        number_text(own.rows) if own.rows else "",
        bytes_text(own.bytes) if own.bytes else "",
        cost_text(own.cost * second, domain),
    )


def _total(estimates: Estimates) -> tuple[str, ...]:
    second, domain = estimates.statistics.second, estimates.statistics.domain
    cost = cost_text(estimates.cost * second, domain)
    return "", "", number_text(estimates.rows), bytes_text(estimates.bytes), cost


def assumptions(estimates: Estimates) -> Iterator[str]:
    """The defaults used for unknown statistics, each stream once."""
    streams = {node.stream: node for node, _ in estimates if isinstance(node, Source)}
    for name, node in streams.items():
        own = [column for column in node.schema if not column.name.startswith("$")]
        assumed = list(estimates.statistics.assumed(name, tuple(own)))
        if assumed:
            yield f"{name} WITH ({', '.join(assumed)})"


# --- as data --------------------------------------------------------------------------------------


def costs_json(estimates: Estimates, signatures: Signatures) -> dict[str, object]:
    """Rates are rows per second (on raw time per unit), validity is in chronons, processor time in
    seconds per second (per unit)."""
    second = estimates.statistics.second
    return {
        "rows": estimates.rows,
        "bytes": estimates.bytes,
        "processor": estimates.cost * second / 1e9,
        "assumed": list(assumptions(estimates)),
        "engine": {each.name: each.cost * second / 1e9 for each in estimates.engine},
        "plan": _node_json(estimates, estimates.plan, signatures, SharedNodes(estimates.plan)),
    }


def _node_json(
    estimates: Estimates, node: PhysicalPlan, signatures: Signatures, shared: SharedNodes
) -> dict[str, object]:
    known: dict[str, object] = {"id": signatures[node]}
    if shared.is_known(node):
        return known | {"operator": "Shared", "shared": shared.name(node)}
    told = known | {"operator": type(node).__name__}
    if shared.is_shared(node):
        told["shared"] = shared.name(node)
    told["properties"] = properties(node, estimates.statistics.domain)
    told |= _estimate_json(estimates[node], estimates.statistics.second)
    inputs = [_node_json(estimates, child, signatures, shared) for child in node.inputs]
    return told | {"inputs": inputs}


def _estimate_json(own: Estimate, second: float) -> dict[str, object]:
    return {
        "rate": own.output.rate * second,
        "elements": own.output.elements * second,
        "valid": own.output.length,
        "granule": own.output.granule,
        "rows": own.rows,
        "bytes": own.bytes,
        "processor": own.cost * second / 1e9,
    }


# --- numbers as text ------------------------------------------------------------------------------

_SPANS = (("d", 86_400e6), ("h", 3600e6), ("min", 60e6), ("s", 1e6), ("ms", 1e3), ("µs", 1.0))


def number_text(number: float) -> str:
    """Three significant digits.

    >>> [number_text(n) for n in (0.01234, 1.5, 20, 1000.5, 2001, 1234567.0)]
    ['0.0123', '1.5', '20', '1,000', '2,001', '1,230,000']
    """
    if number >= 1000:
        digits = len(str(int(number))) - 3 if number >= 10_000 else 0
        return f"{round(number, -digits):,.0f}"
    return f"{number:.3g}"


def rate_text(rate: float, domain: TimeDomain) -> str:
    return f"{number_text(rate)}/{'s' if domain.microseconds else 'unit'}"


def span_text(chronons: float, domain: TimeDomain) -> str:
    """
    >>> from millstream.model.time import RAW_TIME, TIMESTAMP_TIME
    >>> span_text(90e6, TIMESTAMP_TIME), span_text(1, TIMESTAMP_TIME), span_text(90, RAW_TIME)
    ('1.5 min', 'an instant', '90')
    """
    if chronons <= 1:
        return "an instant"
    if not domain.microseconds:
        return number_text(chronons)
    span = chronons * domain.microseconds
    unit, size = next((u, s) for u, s in _SPANS if span >= s or s == 1.0)
    return f"{number_text(span / size)} {unit}"


def bytes_text(number: float) -> str:
    """
    >>> bytes_text(512), bytes_text(140_000)
    ('512 B', '137 KiB')
    """
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= size:
            return f"{number_text(number / size)} {unit}"
    return f"{number_text(number)} B"


def cost_text(nanoseconds: float, domain: TimeDomain) -> str:
    """The share of one processor; on raw time the processor time per unit."""
    if domain.microseconds:
        return f"{number_text(nanoseconds / 1e7)} %"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{number_text(nanoseconds / size)} {unit}"
    return f"{number_text(nanoseconds)} ns"
