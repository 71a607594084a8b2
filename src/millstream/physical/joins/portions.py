"""Portions: how many elements are joined at a time, if any two may be partners.

The pairs of a batch with a state may be too many for memory. The first portion is safe for any
condition; later ones depend on the number of pairs formed.

>>> portions = Portions(partners=PAIRS // 8)
>>> portions.size
8
>>> portions.formed(pairs=100)
>>> portions.size
32
>>> portions.formed(pairs=2 * PAIRS)
>>> portions.size
16
"""

from __future__ import annotations

PAIRS = 1 << 20  # about this many pairs are formed at a time


class Portions:
    """`partners` is the maximum number of partners per element."""

    def __init__(self, partners: int) -> None:
        self.size = max(1, PAIRS // max(1, partners))

    def formed(self, pairs: int) -> None:
        if pairs < PAIRS // 4:
            self.size *= 4
        elif pairs > PAIRS:
            self.size = max(1, self.size // 2)
