"""The placement of rows: equal keys go to the same shard, in every process and every release.

A shard is a part of a fragment's state with its own operators. The number of shards is fixed when a
query first starts, since its state is stored by shard. Spark's hash is not suitable: it differs
between an INT 7 and a BIGINT 7.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.physical.batch import Ints
from millstream.physical.row_hashes import row_hashes


def shards_of(columns: Sequence[pa.Array], length: int, shards: int) -> Ints:
    """The shard of each row by the values of its key; without columns, all rows are together."""
    if shards == 1 or not columns:
        return np.zeros(length, np.int64)
    hashes = row_hashes(columns, length)
    return (hashes % np.uint64(shards)).astype(np.int64)
