"""Fragments as text: what runs where, and by which keys rows are exchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millstream.fragments.edges import LEAVES, Exchange, Fragment
from millstream.logical.text import expression_text
from millstream.model.time import RAW_TIME, TimeDomain
from millstream.physical.signature import Signatures
from millstream.physical.text import physical_text


def fragments_text(fragments: Sequence[Fragment], time: TimeDomain = RAW_TIME) -> str:
    """The fragments from the last one down, each with its outputs and their destinations."""
    return "\n".join(line for f in reversed(fragments) for line in _lines(f, time))


def _lines(fragment: Fragment, time: TimeDomain) -> Iterator[str]:
    if fragment.number == LEAVES:
        yield "Leaves: where the rows are read"
    else:
        shards = "shards by key" if fragment.keyed else "one shard"
        yield f"Fragment {fragment.number}: {shards}"
    signatures = Signatures.given(fragment.plan, fragment.signatures)
    for exchange, plan in zip(fragment.exchanges, fragment.plan.sources, strict=True):
        yield f"  {_way(exchange)}"
        yield from (f"    {line}" for line in physical_text(plan, time, signatures).splitlines())


def _way(exchange: Exchange) -> str:
    if exchange.consumer is None:
        return "the answer"
    keys = ", ".join(map(expression_text, exchange.keys))
    by = " everywhere" if exchange.everywhere else f" by {keys}" if keys else ""
    return f"#{exchange.number} to fragment {exchange.consumer}{by}"
