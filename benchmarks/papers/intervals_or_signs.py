"""Intervals or signs: K's time-interval approach (TIA) against the positive-negative one (PNA).

K §14.3 on Q1 to Q6 of NEXMark: figure 14.1 (total runtimes), figure 14.5 (Q3 by hash and by nested
loops), figure 14.7 (Q5, grouped before the second join or after it) and figure 14.9 (a join whose
areas follow the order of expiry, or do not). Hybrid is Millstream's own choice. Each emits its
results in its own form, and PNA has an operator for NOW windows too. K processes one row at a time;
here a batch has 1,000. Times are processor time for the whole stream; state is the maximum total of
all operators, sampled twenty times per run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from benchmarks.driving import Drive, physical
from benchmarks.papers import kraemer
from benchmarks.papers.claims import Claim, Cost, Setting, show
from millstream.optimizer.choice import Approach, Choices
from millstream.physical.joins.areas.area import Probing
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.pointwise import Pointwise, PointwiseFunction
from millstream.physical.operators.source import Source

BATCH = 1_000
LOOKS = 20
BIDS, FEW_BIDS = 1_000_000, 60_000
SHARES = {"Q6": 100}  # one row in 100: >= ALL compares every group with every other one

APPROACHES = {"TIA": Approach.INTERVALS, "PNA": Approach.SIGNED, "hybrid": Approach.HYBRID}

Streams = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Run:
    """A query over whole streams; every batch has rows of each stream in proportion, so that none
    runs ahead."""

    text: str
    streams: Streams
    choices: Choices
    time_column: str = "timestamp"

    def drive(self) -> Drive:
        plan = physical(
            self.text,
            self.streams,
            self.time_column,
            self.choices,
            _with_now_windows if self.choices.approach is Approach.SIGNED else None,
            emit="ELEMENTS",
        )
        return Drive(plan, self.streams, self.time_column)

    def costs(self) -> tuple[Cost, Cost]:
        """The costs in time (ms) and state (KiB)."""
        few = {name: stream.slice(0, 2 * BATCH) for name, stream in self.streams.items()}
        replace(self, streams=few).drive().timed_until(1.0, BATCH)  # compiles
        drive, seconds, state = self.drive(), 0.0, 0
        for part in range(LOOKS):
            seconds += drive.timed_until((part + 1) / LOOKS, BATCH)
            state = max(state, drive.nbytes)
        work = sum(vertex.rows_in for vertex in drive.graph.vertices), drive.touched
        return Cost(1e3 * seconds, *work), Cost(state / 1024, *work)


def _with_now_windows(plan: PhysicalPlan) -> PhysicalPlan:
    """The plan with an operator that emits the ends of rows that live one instant (K §14.3.1)."""
    match plan:
        case Source():
            return Pointwise((plan,), PointwiseFunction.IDENTITY, plan.schema)
        case Pointwise():
            return plan  # a longer window
    inputs = map(_with_now_windows, plan.inputs)
    return replace(plan, **dict(zip(plan.input_names, inputs, strict=True)))


def _by_approach(text: str, streams: Streams) -> dict[str, Run]:
    return {
        name: Run(text, streams, Choices(approach=approach))
        for name, approach in APPROACHES.items()
    }


def runs_of_queries(streams: Streams) -> dict[str, dict[str, Run]]:
    """By query and approach."""
    found = {}
    for name, text in kraemer.QUERIES.items():
        rows = {n: s.slice(0, len(s) // SHARES.get(name, 1)) for n, s in streams.items()}
        found[name] = _by_approach(text, rows)
    return found


def runs_by_probing(streams: Streams) -> dict[str, Run]:
    areas = {"hash": AreaChoice(), "loops": AreaChoice(Probing.LOOP)}
    return {
        f"{name} {kind}": Run(
            kraemer.QUERIES["Q3"], streams, Choices(approach=APPROACHES[name], areas=area)
        )
        for kind, area in areas.items()
        for name in ("TIA", "PNA")
    }


def runs_of_q5(streams: Streams) -> dict[str, Run]:
    texts = {"plan 1": kraemer.Q5_GROUPED_FIRST, "plan 2": kraemer.QUERIES["Q5"]}
    return {
        f"{name} {plan}": Run(text, streams, Choices(approach=APPROACHES[name]))
        for plan, text in texts.items()
        for name in ("TIA", "PNA")
    }


def runs_by_expiry(rows: int = 100_000) -> dict[str, Run]:
    """Two streams of integers up to 1,000, on average one row per 10 ms, windows of 5 seconds."""
    streams = {}
    for seed, name in enumerate("AB"):
        random = np.random.default_rng(seed)
        times = np.cumsum(random.exponential(10.0, rows).astype(np.int64))
        streams[name] = pa.table({"t": times, "x": random.integers(0, 1_001, rows)})
    text = "SELECT a.x FROM A WINDOW(RANGE 5000) a JOIN B WINDOW(RANGE 5000) b ON a.x = b.x"
    return {
        "in order": Run(text, streams, Choices(), "t"),
        "any order": Run(text, streams, Choices(areas=AreaChoice(calendar=True)), "t"),
    }


# K's statements on figure 14.1 and on memory, by query.
RUNTIMES = {
    "Q1": "over 2",
    "Q2": "almost 3",
    "Q3": "less than 2",
    "Q4": "less than 2",
    "Q5": "less than 2",
    "Q6": "about 2",
}
_WAITS = (
    "a count that changes rarely holds the frontier of all back, and the anti-join of >= ALL keeps "
    "what comes meanwhile"
)
_HERE = Setting("", slice(None))


def total_runtimes(streams: Streams) -> None:
    costs = {
        name: {approach: run.costs() for approach, run in runs.items()}
        for name, runs in runs_of_queries(streams).items()
    }
    lines = {name: Setting(f"in {name}", slice(i, i + 1)) for i, name in enumerate(costs)}
    claims = [Claim("TIA", "PNA", lines[name], times) for name, times in RUNTIMES.items()]
    values = [{name: time for name, (time, _) in each.items()} for each in costs.values()]
    show("K figure 14.1: total runtimes", "ms", list(costs), values, claims)
    claims = [Claim("TIA", "PNA", lines[name], why=_WAITS) for name in RUNTIMES]
    values = [{name: state for name, (_, state) in each.items()} for each in costs.values()]
    show("K §14.4: memory", "KiB of state", list(costs), values, claims, work=False)


def _contest(title: str, runs: Mapping[str, Run], *claims: Claim) -> None:
    costs = {name: run.costs()[0] for name, run in runs.items()}
    show(title, "ms", [""], [costs], claims)


def report(quick: bool = False) -> None:
    streams = kraemer.streams(bids=FEW_BIDS if quick else BIDS)
    print(f"K: for {len(streams['Bid']):,} bids, in batches of {BATCH:,} rows", end="\n\n")
    total_runtimes(streams)
    _contest(
        "K figure 14.5: Q3 by hash and by nested loops",
        runs_by_probing(streams),
        Claim("TIA hash", "PNA hash", _HERE, "less than 2"),
        Claim("TIA loops", "PNA loops", _HERE, "over 2"),
        Claim("TIA hash", "TIA loops", _HERE),
    )
    _contest(
        "K figure 14.7: Q5, the join with the sellers after the grouping (1) or before it (2)",
        runs_of_q5(streams),
        Claim("TIA plan 1", "TIA plan 2", _HERE),
        Claim("TIA plan 1", "PNA plan 1", _HERE, "less than 2"),
    )
    _contest(
        "K figure 14.9: areas for elements that expire in order, or in any order",
        runs_by_expiry(20_000 if quick else 100_000),
        Claim("in order", "any order", _HERE),
    )
