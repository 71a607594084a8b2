"""The sinks `console` and `noop`, for experiments."""

from __future__ import annotations

import pyarrow as pa

from millstream.connectors.contracts import GivenBatch, Noop, Sink, SinkContext
from millstream.model.types import LAST_TIMESTAMP


class Console(Noop):
    """Prints rows as lines under the column names."""

    def __init__(self, context: SinkContext) -> None:
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


def noop(context: SinkContext) -> Sink:
    return Noop()
