"""The metrics of a running query: its progress and the work of each operator."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from millstream.model.instants import Instant
from millstream.model.modes import QueryState


@dataclass(frozen=True)
class OperatorMetrics:
    """`id` is that of the operator in `explain(format="json", physical=True)`. `rate` is input rows
    per second since the start; `selectivity` is output rows per input row; `seconds` is the
    processing time of the operator itself."""

    id: str
    name: str
    rows_in: int
    rows_out: int
    rate: float
    selectivity: float | None
    state_rows: int
    state_bytes: int
    seconds: float
    frontier: Instant | None


@dataclass(frozen=True)
class SourceMetrics:
    """`rows` counts all rows that arrived, including late and unreadable ones; `queued` those that
    wait to be taken; `held` those that wait for the frontier, to be processed in order. `trouble`
    says why a table cannot be read at present; its last rows stay in use."""

    stream: str
    rows: int
    late: int
    errors: int
    queued: int
    held: int
    idle: bool
    frontier: Instant | None
    trouble: str | None = None


@dataclass(frozen=True)
class Metrics:
    """Operators from the root down, sources by name."""

    operators: list[OperatorMetrics]
    sources: dict[str, SourceMetrics]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Progress:
    """The progress of a query; `seconds` is its processing time, excluding the sink."""

    state: QueryState
    batches: int
    rows_in: int
    rows_out: int
    late: int
    errors: int
    frontier: Instant | None
    seconds: float
