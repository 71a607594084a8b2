"""Cuts a physical plan into fragments, at the edges where rows must be exchanged.

A fragment's operators run in parallel shards: rows with equal keys are in the same shard, so each
shard computes a part of the answer. Operators with the same keys share a fragment; without a key
there is one shard. The leaves (sources, and stateless operators above them) are a fragment without
state or shards.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from millstream.fragments.edges import LEAVES, OUTPUTS, Exchange, Fragment, Outputs, Received
from millstream.fragments.requirements import Requirement, following, requirement, spread
from millstream.logical.expressions import Expression
from millstream.physical.operator import Pattern, PhysicalPlan, weakest_of
from millstream.physical.operators.filter import Filter
from millstream.physical.operators.granularity import Granularity
from millstream.physical.operators.map import Map
from millstream.physical.operators.source import Source, sources_of
from millstream.physical.operators.time_window import TimeWindow
from millstream.physical.operators.union import Union
from millstream.physical.placing import Exchanged, Placing
from millstream.physical.signature import Signatures, nodes_of

ColumnKey: TypeAlias = tuple[str, str]


def fragments_of(plan: PhysicalPlan, signatures: Signatures | None = None) -> tuple[Fragment, ...]:
    """The fragments, producers before consumers, the leaves first."""
    cutter = _Cutter(signatures or Signatures())
    root = cutter.site(plan)
    cutter.send(_Cut(root.fragment, plan, None, (), False))
    return cutter.fragments()


def placing(plan: PhysicalPlan, places: int) -> Placing:
    """What the cost model needs to know about the fragments of a plan on `places` places."""
    cutter = _Cutter(Signatures())
    root = cutter.site(plan)
    cutter.send(_Cut(root.fragment, plan, None, (), False))
    levels = max(fragment.level for fragment in cutter.fragments())
    return Placing(cutter.exchanged(places), levels)


# --- cutting --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Site:
    """Where a node runs, and by which of its columns its rows are placed: a set of equal columns
    per key. None: no longer known. No keys: all rows are together."""

    fragment: int
    keys: tuple[frozenset[ColumnKey], ...] | None


@dataclass
class _Cut:
    producer: int
    node: PhysicalPlan
    consumer: int | None
    keys: tuple[Expression, ...]
    everywhere: bool


@dataclass
class _Cutter:
    _signatures: Signatures
    _sites: dict[int, _Site] = field(default_factory=dict)
    _cuts: list[_Cut] = field(default_factory=list)
    _crossing: dict[tuple[int, int], _Cut] = field(default_factory=dict)  # by consumer and port
    _merged: list[int] = field(default_factory=lambda: [LEAVES])  # the merged fragment of each
    _keyed: list[bool] = field(default_factory=lambda: [False])

    def site(self, node: PhysicalPlan) -> _Site:
        if id(node) not in self._sites:
            below = [self.site(child) for child in node.inputs]
            self._sites[id(node)] = self._placed(node, below)
        return self._sites[id(node)]

    def _placed(self, node: PhysicalPlan, below: list[_Site]) -> _Site:
        if isinstance(node, Source):
            return _Site(LEAVES, None)
        fragments = {self._find(site.fragment) for site in below}
        if _is_stateless(node) and len(below) == 1:
            return _Site(below[0].fragment, _through(node, below[0].keys))
        if _is_stateless(node) and fragments == {LEAVES}:
            return _Site(LEAVES, None)
        needed = self._needed(node, below)
        for base, site in enumerate(below):
            kept = _kept(needed, base, site)
            if kept is not None and self._joins(node, below, base, kept, needed):
                return _Site(site.fragment, _results(needed, kept))
        return self._anew(node, below, needed)

    def _needed(self, node: PhysicalPlan, below: list[_Site]) -> Requirement:
        """Input that is in one shard already counts as small; if that is all, it stays there. A
        small table moves to the rows of streams, not the reverse."""
        needed = requirement(node)
        if len(below) == 2 and needed.count:
            for port, other in enumerate(reversed(node.inputs)):
                moves = below[port].keys and _kept(needed, port, below[port]) is None
                if moves and _is_small(other):
                    return spread(node, small=1 - port, insist=True) or needed
        together = [site.keys == () for site in below]
        if needed.count or all(together):
            return needed
        return spread(node, small=0 if together[0] else 1) or needed

    def _joins(
        self,
        node: PhysicalPlan,
        below: list[_Site],
        base: int,
        kept: tuple[int, ...],
        needed: Requirement,
    ) -> bool:
        """Move the other inputs to the fragment of one of them, if possible."""
        home = self._find(below[base].fragment)
        others = {port: self._find(below[port].fragment) for port in range(len(below))}
        del others[base]
        fits = {port for port in others if _kept(needed, port, below[port]) == kept}
        if needed.count and not kept and len(fits) < len(others):
            return False  # moving many rows to one shard for one input does not pay
        for port, other in others.items():
            if other in self._downstream(home) or (other == home and port not in fits):
                return False
        for port in others:
            other = self._find(below[port].fragment)
            if other == home:
                continue
            if port in fits and home not in self._downstream(other):
                self._merged[other] = home
            else:
                self._bring(node, port, home, needed, kept)
        return True

    def _anew(self, node: PhysicalPlan, below: list[_Site], needed: Requirement) -> _Site:
        number = len(self._merged)
        self._merged.append(number)
        self._keyed.append(bool(needed.count))
        every = tuple(range(needed.count))
        for port in range(len(below)):
            self._bring(node, port, number, needed, every)
        return _Site(number, _results(needed, every))

    def _bring(
        self,
        node: PhysicalPlan,
        port: int,
        consumer: int,
        needed: Requirement,
        kept: tuple[int, ...],
    ) -> None:
        child = node.inputs[port]
        keys, everywhere = needed.keys(port, kept), port == needed.everywhere
        cut = _Cut(self.site(child).fragment, child, consumer, keys, everywhere)
        self._crossing[id(node), port] = self.send(cut)

    def send(self, cut: _Cut) -> _Cut:
        """The cut, or an existing one with the same rows."""
        for other in self._cuts:
            if other.node is cut.node and replace(cut, producer=other.producer) == other:
                return other
        self._cuts.append(cut)
        return cut

    # --- fragments that become one

    def _find(self, fragment: int) -> int:
        while self._merged[fragment] != fragment:
            fragment = self._merged[fragment]
        return fragment

    def _downstream(self, fragment: int) -> set[int]:
        found: set[int] = set()
        ahead = [fragment]
        while ahead:
            here = ahead.pop()
            for cut in self._cuts:
                if cut.consumer is not None and self._find(cut.producer) == here:
                    consumer = self._find(cut.consumer)
                    if consumer not in found:
                        found.add(consumer)
                        ahead.append(consumer)
        return found

    # --- the outcome

    def exchanged(self, places: int) -> list[Exchanged]:
        """The cut edges, except that of the answer."""
        return [
            Exchanged(cut.node, places if cut.everywhere else 1)
            for cut in self._cuts
            if cut.consumer is not None
        ]

    def fragments(self) -> tuple[Fragment, ...]:
        used = {self._find(number) for number in range(len(self._merged))}
        levels = {number: self._level(number) for number in used}
        order = sorted(used, key=lambda number: (levels[number], number))
        numbers = {fragment: number for number, fragment in enumerate(order)}
        exchanges = self._exchanges(numbers)
        return tuple(
            self._fragment(fragment, numbers, levels[fragment], exchanges) for fragment in order
        )

    def _level(self, fragment: int) -> int:
        below = [
            self._find(cut.producer)
            for cut in self._cuts
            if cut.consumer is not None and self._find(cut.consumer) == fragment
        ]
        return max((self._level(producer) + 1 for producer in below), default=0)

    def _exchanges(self, numbers: dict[int, int]) -> dict[int, Exchange]:
        """By cut; the answer is the first."""
        ports: dict[int, int] = {}
        found = {}
        answer_first = sorted(self._cuts, key=lambda cut: cut.consumer is not None)
        for number, cut in enumerate(answer_first):
            producer = numbers[self._find(cut.producer)]
            port = ports[producer] = ports.get(producer, -1) + 1
            consumer = None if cut.consumer is None else numbers[self._find(cut.consumer)]
            found[id(cut)] = Exchange(
                number, producer, port, consumer, cut.keys, cut.node.schema, cut.everywhere
            )
        return found

    def _fragment(
        self, fragment: int, numbers: dict[int, int], level: int, exchanges: dict[int, Exchange]
    ) -> Fragment:
        number = numbers[fragment]
        own = [cut for cut in self._cuts if exchanges[id(cut)].producer == number]
        own.sort(key=lambda cut: exchanges[id(cut)].port)
        rebuilt = _Rebuilder(self._crossing, exchanges)
        plan = Outputs(tuple(rebuilt.node(cut.node) for cut in own))
        *nodes, _ = nodes_of(plan)
        signatures = [self._signatures[rebuilt.whole[id(node)]] for node in nodes]
        return Fragment(
            number,
            level,
            plan,
            tuple(exchanges[id(cut)] for cut in own),
            self._keyed[fragment],
            (*signatures, OUTPUTS),
        )


class _Rebuilder:
    """The plan of a fragment, with `Received` nodes for input from other fragments."""

    def __init__(
        self, crossing: dict[tuple[int, int], _Cut], exchanges: dict[int, Exchange]
    ) -> None:
        self._crossing = crossing
        self._exchanges = exchanges
        self._known: dict[int, PhysicalPlan] = {}
        self.whole: dict[int, PhysicalPlan] = {}  # the node of the whole plan for each new one

    def node(self, node: PhysicalPlan) -> PhysicalPlan:
        if id(node) not in self._known:
            inputs = [self._input(node, port) for port in range(len(node.inputs))]
            made = self._known[id(node)] = node.with_inputs(inputs)
            self.whole[id(made)] = node
        return self._known[id(node)]

    def _input(self, node: PhysicalPlan, port: int) -> PhysicalPlan:
        cut = self._crossing.get((id(node), port))
        if cut is None:
            return self.node(node.inputs[port])
        if id(cut) not in self._known:
            exchange = self._exchanges[id(cut)]
            pattern = cut.node.pattern
            if exchange.producer != LEAVES and pattern is Pattern.WEAKEST:
                pattern = weakest_of(pattern, Pattern.WEAK)  # shards progress independently
            made = self._known[id(cut)] = Received(exchange.number, cut.node.schema, pattern)
            self.whole[id(made)] = cut.node
        return self._known[id(cut)]


def _is_small(plan: PhysicalPlan) -> bool:
    return all(source.small for source in sources_of(plan))


def _is_stateless(node: PhysicalPlan) -> bool:
    return isinstance(node, Filter | Map | TimeWindow | Granularity | Union)


def _kept(needed: Requirement, port: int, site: _Site) -> tuple[int, ...] | None:
    """The needed keys by which the rows of an input are placed; None if that is not enough."""
    if site.fragment == LEAVES or site.keys is None or port == needed.everywhere:
        return None
    found = []
    for names in site.keys:
        position = next((i for i, key in enumerate(needed.columns(port)) if key in names), None)
        if position is None:
            return None
        found.append(position)
    return tuple(found)


def _results(needed: Requirement, kept: tuple[int, ...]) -> tuple[frozenset[ColumnKey], ...] | None:
    keys = tuple(needed.results[position] for position in kept)
    return keys if all(keys) else None


def _through(
    node: PhysicalPlan, keys: tuple[frozenset[ColumnKey], ...] | None
) -> tuple[frozenset[ColumnKey], ...] | None:
    """The keys in terms of a stateless operator's output."""
    if keys is None:
        return None
    passed = tuple(frozenset(following(node, names)) for names in keys)
    return passed if all(passed) else None
