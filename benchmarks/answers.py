"""Compares answers by a checksum that does not depend on how their intervals are cut.

An answer is a bag of rows with `[valid_from, valid_to)`. Its checksum is the sum over its rows of
hash(columns) · (hash(valid_to) - hash(valid_from)), modulo 2⁶⁴. Cutting a piece in two adds and
subtracts the same hash, so answers that agree at every instant have the same checksum, in any order
and any pieces.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]


def checksum(answer: pa.Table, columns: tuple[str, ...]) -> int:
    with np.errstate(over="ignore"):
        weight = np.full(len(answer), 0x9E3779B97F4A7C15, np.uint64)
        for name in columns:
            weight = _mixed(weight ^ _bits(answer[name]))
        passed = _mixed(_bits(answer["valid_to"])) - _mixed(_bits(answer["valid_from"]))
        return int((weight * passed).sum(dtype=np.uint64))


def _bits(column: pa.ChunkedArray) -> Hashes:
    values = column.to_numpy()
    if values.dtype.kind == "f":
        floats: npt.NDArray[np.float64] = values.astype(np.float64) + 0.0  # -0.0 is 0.0
        return floats.view(np.uint64)
    whole: npt.NDArray[np.int64] = values.astype(np.int64)
    return whole.view(np.uint64)


def _mixed(bits: Hashes) -> Hashes:
    """A bijection of 64 bits that scatters them (the finalizer of splitmix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
