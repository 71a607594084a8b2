"""Where answers go: to the console, nowhere, or to a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from millstream.errors import NotYetError, QueryError, one_of
from millstream.instants import Instant
from millstream.records import LAST_TIMESTAMP

_SINKS = ("console", "noop")


@dataclass(frozen=True)
class GivenBatch:
    """What a sink is told beside the rows: the number of the batch, from 0, and the frontier below
    which the answer is complete; None where nothing is complete yet."""

    id: int
    frontier: Instant | None


class Sink(Protocol):
    """Called in order from one thread; `close` when the query ends, however it does."""

    def give(self, table: pa.Table, batch: GivenBatch) -> None: ...

    def close(self) -> None: ...


class Noop:
    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        pass

    def close(self) -> None:
        pass


class Console(Noop):
    """The rows as lines, under the names of the columns."""

    def __init__(self) -> None:
        self._headed = False

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        if not table.num_rows:
            return
        lines = [] if self._headed else [" | ".join(table.column_names)]
        self._headed = True
        endless = pa.scalar(LAST_TIMESTAMP).cast(pa.timestamp("us")).as_py()
        ends = {2**63 - 1, endless}
        for row in table.to_pylist():
            texts = ["∞" if k == "valid_to" and v in ends else str(v) for k, v in row.items()]
            lines.append(" | ".join(texts))
        print("\n".join(lines), flush=True)


class Function(Noop):
    def __init__(self, function: Callable[[pa.Table, GivenBatch], object]) -> None:
        self._function = function

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        self._function(table, batch)

    def close(self) -> None:
        """An object that can be called may want to know of the end."""
        close = getattr(self._function, "close", None)
        if callable(close):
            close()


def sink_of(sink: object) -> Sink:
    """The sink that `query.start` names; none means that results are kept."""
    if sink is None or sink == "noop":
        return Noop()
    if sink == "console":
        return Console()
    if callable(sink):
        return Function(sink)
    if isinstance(sink, str):
        raise QueryError(f'sink "{sink}" does not exist', help=one_of(sink, _SINKS, "sink"))
    raise QueryError(
        f'a sink is "console", "noop" or a function f(table, batch), not {type(sink).__name__}'
    )


def named_sink(name: str, **options: Any) -> Sink:
    """`ms.sink("parquet", path=…)`."""
    raise NotYetError(
        f'sink "{name}" is not built yet', help="pass a function f(table, batch) that writes"
    )
