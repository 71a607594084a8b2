"""Netting: merges an addition and its retraction in a batch of signed elements into one element.

`+1 [t, e)` and `-1 [t', e)` of one row are `+1 [t, t')`. A join multiplies the elements of both
inputs: without netting, it forms the pairs of all additions, which the pairs of the retractions
then cancel. After netting, the number of negative elements in a batch is bounded by the state
before it.

>>> import pyarrow as pa
>>> batch = Batch.of(
...     [pa.array(["a", "b", "a", "c"])],
...     start=[1, 2, 4, 5], end=[INFINITY] * 4, weight=[1, 1, -1, -1])
>>> net = netted(batch)
>>> for row, *times in zip(net.columns[0].to_pylist(), net.start, net.end, net.weight):
...     print(row, *times)
a 1 4 1
b 2 9223372036854775807 1
c 5 9223372036854775807 -1
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.model.arrays import of_int64
from millstream.model.time import INFINITY
from millstream.physical.batch import Batch
from millstream.physical.kernels.netting import net_elements
from millstream.physical.kernels.scans import ascends, greatest, least
from millstream.physical.state.keys import KeySpace

__all__ = ["INFINITY", "netted"]


def netted(batch: Batch) -> Batch:
    """The same bag of elements, with ends in place of the negative elements that the batch itself
    explains."""
    if len(batch) < 2 or least(batch.weight) > 0 or greatest(batch.weight) < 0:
        return batch
    alike = KeySpace([*(array.type for array in batch.columns), pa.int64()])
    codes = alike.encode([*batch.columns, of_int64(batch.end)], len(batch))
    if alike.count == len(batch):
        return batch
    start = batch.start
    order = np.arange(len(batch)) if ascends(start) else np.argsort(start, kind="stable")
    rows, start, end, weight = net_elements(
        codes, alike.count, order, start, batch.end, batch.weight
    )
    return Batch(batch.columns.take(rows), start, end, weight, batch.frontier)
