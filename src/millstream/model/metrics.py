"""What a running query tells of itself: how far it has come, and what each operator does."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from millstream.model.instants import Instant


@dataclass(frozen=True)
class OperatorMetrics:
    """`rate` is rows in for each second since the query began; `selectivity` is rows out for each
    row in; `seconds` is the time that the operator itself took."""

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
    """`rows` are all that came, the late ones and those that could not be read among them; `queued`
    have come and are not taken yet; `held` wait for the frontier, to go on in order. `trouble` says
    why a table cannot be read at present, while what was read last still holds."""

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
    """How far a query has come; `seconds` is the time it was at work, without that of the sink."""

    state: str
    batches: int
    rows_in: int
    rows_out: int
    late: int
    errors: int
    frontier: Instant | None
    seconds: float
