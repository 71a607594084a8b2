"""K's formulas for lengths and distances where ours differ (§22.4): ours approach them."""

from __future__ import annotations


def scalar_distance(d: float, life: float, g: float) -> float:
    """K eq. 22.6: d' = l' = g / (1 - (1 - g/l)^(2l/d)) if d < l: one row per granule in which
    a row starts or ends (Cardenas). Otherwise K's rows do not overlap: d' = d."""
    return g / (1 - (1 - g / life) ** (2 * life / d)) if d < life else d


def grouped_distance_length(d: float, life: float, g: float, n: float) -> tuple[float, float]:
    """K eq. 22.7: eq. 22.6 for each of n groups, whose rows are n·d apart."""
    if n * d >= life:
        return d, life
    of_one = scalar_distance(n * d, life, g)
    return of_one / n, of_one


def partial_aggregates(d: float, life: float, g: float) -> float:
    """K eq. 22.30: the number of pieces of time that K's operator keeps, one per end."""
    return life / g * (1 - (1 - g / life) ** (life / d)) if d < life else 1.0


def distinct_length(d: float, life: float, n: float) -> float:
    """K eq. 22.5: l' = n·d if n·d ≤ l: an equal row arrived n·d before; else l."""
    return min(n * d, life)
