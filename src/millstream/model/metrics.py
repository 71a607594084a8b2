"""The metrics of a running query: its progress, the work of each operator and the rows of each
source; and the counts that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeAlias

from millstream.model.instants import Instant
from millstream.model.modes import QueryState
from millstream.model.time import INFINITY

Show: TypeAlias = Callable[[int], Instant | None]  # a frontier for display; None: nothing is known


@dataclass(frozen=True)
class Tally:
    """For one operator, or all its shards together."""

    id: str  # its signature
    name: str
    rows_in: int
    rows_out: int
    seconds: float
    state_rows: int
    state_bytes: int
    frontier: int

    def told(self) -> list[Any]:
        """As plain values."""
        return [
            self.id, self.name, self.rows_in, self.rows_out, self.seconds, self.state_rows,
            self.state_bytes, self.frontier,
        ]  # fmt: skip

    def since(self, before: Tally) -> Tally:
        """The work since then, with the current state."""
        return replace(
            self,
            rows_in=self.rows_in - before.rows_in,
            rows_out=self.rows_out - before.rows_out,
            seconds=self.seconds - before.seconds,
        )

    def after(self, before: Tally) -> Tally:
        """The work up to then and since then."""
        return replace(
            self,
            rows_in=self.rows_in + before.rows_in,
            rows_out=self.rows_out + before.rows_out,
            seconds=self.seconds + before.seconds,
        )


def together(tallies: Iterable[Tally]) -> Tally:
    """The sum over parallel shards; at least one."""
    found = list(tallies)
    return Tally(
        found[0].id,
        found[0].name,
        sum(tally.rows_in for tally in found),
        sum(tally.rows_out for tally in found),
        sum(tally.seconds for tally in found),
        sum(tally.state_rows for tally in found),
        sum(tally.state_bytes for tally in found),
        min((tally.frontier for tally in found), default=INFINITY),
    )


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

    @staticmethod
    def of(tally: Tally, show: Show, elapsed: float) -> OperatorMetrics:
        """After `elapsed` seconds."""
        return OperatorMetrics(
            tally.id,
            tally.name,
            tally.rows_in,
            tally.rows_out,
            tally.rows_in / elapsed if elapsed > 0 else 0.0,
            tally.rows_out / tally.rows_in if tally.rows_in else None,
            tally.state_rows,
            tally.state_bytes,
            tally.seconds,
            show(tally.frontier),
        )


class SourceCounts(Protocol):
    """What an input of a query counts."""

    received: int
    late: int
    bad: int
    idle: bool
    frontier: int

    @property
    def queued(self) -> int | None: ...

    @property
    def held(self) -> int: ...

    @property
    def trouble(self) -> str | None: ...


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

    @staticmethod
    def of(stream: str, input: SourceCounts, show: Show) -> SourceMetrics:
        return SourceMetrics(
            stream,
            input.received,
            input.late,
            input.bad,
            input.queued or 0,
            input.held,
            input.idle,
            show(input.frontier),
            input.trouble,
        )


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
