"""Portions: how many elements meet their partners at a time, where any two may be partners.

The pairs of a batch with a state may be too many for memory. The first portion is safe whatever the
condition; later ones follow the number of pairs that were formed.

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

PAIRS = 1 << 20  # about as many pairs are formed at a time


class Portions:
    """`partners` is how many an element may have."""

    def __init__(self, partners: int) -> None:
        self.size = max(1, PAIRS // max(1, partners))

    def formed(self, pairs: int) -> None:
        if pairs < PAIRS // 4:
            self.size *= 4
        elif pairs > PAIRS:
            self.size = max(1, self.size // 2)
