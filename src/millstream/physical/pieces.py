"""Limits how many elements a batch may become when operators cut rows into granules."""

from __future__ import annotations

import numpy as np

from millstream.model.errors import QueryError
from millstream.physical.batch import Ints

MOST = 20_000_000


def check_pieces(count: Ints, granule: int) -> None:
    """Refuse to cut rows into more pieces than memory can hold. `count` is the number of pieces per
    row."""
    total = float(count.sum(dtype=np.float64))  # int64 might overflow
    if total <= MOST:
        return
    rows = np.count_nonzero(count)
    raise QueryError(
        f"{rows:,} {'row' if rows == 1 else 'rows'} valid for up to {int(count.max()):,} granules "
        f"would become {int(total):,} elements in one batch; the maximum is {MOST:,}",
        help=f"the granule is {granule:,} time {'unit' if granule == 1 else 'units'} long: write a "
        "coarser GRANULARITY(d) or EMIT EVERY d, or limit how long rows are valid with a window",
    )
