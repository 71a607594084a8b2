"""Intervals or signs: K's time-interval approach (TIA) against the positive-negative one (PNA).

K §14.3 on Q1 to Q6 of NEXMark: figure 14.1 (total runtimes), figure 14.5 (Q3 by hash and by nested
loops), figure 14.7 (Q5, grouped before the second join or after it) and figure 14.9 (a join whose
areas follow the order of expiry, or do not). Hybrid is what Millstream chooses by itself. K takes
one row at a time; here a batch has 1,000. State is the largest of all operators together, looked at
twenty times in a run; times are processor time, for the whole stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.driving import Drive, physical
from benchmarks.papers import kraemer
from benchmarks.papers.who_wins import Claim, show
from millstream.optimizer.choice import Approach, Choices
from millstream.physical.areas.area import Probing
from millstream.physical.operators.join import AreaChoice

BATCH = 1_000
LOOKS = 20
BIDS, FEW_BIDS = 1_000_000, 60_000
SHARES = {"Q6": 10_000}  # rows: its >= ALL compares every group with every other one

APPROACHES = {"TIA": Approach.INTERVALS, "PNA": Approach.SIGNED, "hybrid": Approach.HYBRID}


@dataclass(frozen=True)
class Cost:
    seconds: float
    state: int  # bytes


def run(
    text: str, streams: Mapping[str, pa.Table], choices: Choices, time_column: str = "timestamp"
) -> Cost:
    """A query over whole streams; each has its share of the rows of every batch, so that none runs
    ahead."""
    drive = Drive(physical(text, streams, time_column, choices), streams, time_column)
    seconds, state = 0.0, 0
    for part in range(LOOKS):
        seconds += drive.timed_until((part + 1) / LOOKS, BATCH)
        state = max(state, drive.nbytes)
    return Cost(seconds, state)


def by_approach(text: str, streams: Mapping[str, pa.Table]) -> dict[str, Cost]:
    few = {name: stream.slice(0, 2 * BATCH) for name, stream in streams.items()}
    found = {}
    for name, approach in APPROACHES.items():
        run(text, few, Choices(approach=approach))  # compiles
        found[name] = run(text, streams, Choices(approach=approach))
    return found


def total_runtimes(streams: Mapping[str, pa.Table]) -> None:
    costs = {
        name: by_approach(text, {n: s.slice(0, SHARES.get(name)) for n, s in streams.items()})
        for name, text in kraemer.QUERIES.items()
    }
    names = list(costs)
    for title, unit, of in (
        ("K figure 14.1: total runtimes", "ms", lambda c: 1e3 * c.seconds),
        ("K §14.4: memory", "KiB of state", lambda c: c.state / 1024),
    ):
        values = [{plan: of(c) for plan, c in costs[name].items()} for name in names]
        claims = [Claim("TIA", "PNA", slice(i, i + 1), name) for i, name in enumerate(names)]
        show(title, unit, names, values, claims)


def nested_loops(streams: Mapping[str, pa.Table]) -> None:
    areas = {"hash": AreaChoice(), "loops": AreaChoice(Probing.LOOP)}
    seconds = {}
    for kind, area in areas.items():
        for name in ("TIA", "PNA"):
            choices = Choices(approach=APPROACHES[name], areas=area)
            cost = run(kraemer.QUERIES["Q3"], streams, choices)
            seconds[f"{name} {kind}"] = 1e3 * cost.seconds
    claims = (
        Claim("TIA hash", "PNA hash"),
        Claim("TIA loops", "PNA loops"),
        Claim("TIA hash", "TIA loops"),
    )
    show("K figure 14.5: Q3 by hash and by nested loops", "ms", ["Q3"], [seconds], claims)


def plans_of_q5(streams: Mapping[str, pa.Table]) -> None:
    texts = {"plan 1": kraemer.Q5_GROUPED_FIRST, "plan 2": kraemer.QUERIES["Q5"]}
    choices = Choices(approach=Approach.INTERVALS)
    seconds = {name: 1e3 * run(text, streams, choices).seconds for name, text in texts.items()}
    title = "K figure 14.7: Q5, the join with the sellers after the grouping (1) or before it (2)"
    show(title, "ms", ["Q5"], [seconds], [Claim("plan 1", "plan 2")])


def areas_by_expiry(rows: int = 100_000) -> None:
    """Two streams of integers up to 1,000, a row in 10 ms on average, windows of 5 seconds."""
    streams = {}
    for seed, name in enumerate("AB"):
        random = np.random.default_rng(seed)
        times = np.cumsum(random.exponential(10.0, rows).astype(np.int64))
        streams[name] = pa.table({"t": times, "x": random.integers(0, 1_001, rows)})
    text = "SELECT a.x FROM A WINDOW(RANGE 5000) a JOIN B WINDOW(RANGE 5000) b ON a.x = b.x"
    kinds = {"in order": Choices(), "any order": Choices(areas=AreaChoice(calendar=True))}
    few = {name: stream.slice(0, 2 * BATCH) for name, stream in streams.items()}
    seconds = {}
    for name, choices in kinds.items():
        run(text, few, choices, "t")
        seconds[name] = 1e3 * run(text, streams, choices, "t").seconds
    title = "K figure 14.9: areas for elements that expire in order, or in any order"
    show(title, "ms", ["join"], [seconds], [Claim("in order", "any order")])


def report(quick: bool = False) -> None:
    streams = kraemer.streams(bids=FEW_BIDS if quick else BIDS)
    total_runtimes(streams)
    nested_loops(streams)
    plans_of_q5(streams)
    areas_by_expiry(20_000 if quick else 100_000)
