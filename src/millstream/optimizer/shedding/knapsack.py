"""The shares with the most output for count windows: a continuous knapsack (A §4.2.1).

There output and cost are sums of one term per input. The input with the most output per cost is
kept whole, then the next, and the last one as far as the capacity allows.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.optimizer.shedding.polynomial import Polynomial


def knapsack(
    output: Polynomial, cost: Polynomial, capacity: float, most: Sequence[float]
) -> list[float]:
    """Shares of at most `most` with the largest output that costs no more than the capacity."""
    left = capacity - cost.terms.get(0, 0.0)
    shares = list(most)  # inputs without a cost are kept
    gains, prices = output.terms, cost.terms
    priced = [each for each, price in prices.items() if each and price > 0]
    for each in sorted(priced, key=lambda each: -gains.get(each, 0.0) / prices[each]):
        port = each.bit_length() - 1
        shares[port] = min(most[port], max(0.0, left / prices[each]))
        left -= prices[each] * shares[port]
    return shares
