"""The papers' plans of a query give the same answer, and what was found is held against what the
papers say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from benchmarks.driving import Drive
from benchmarks.papers import intervals_or_signs, kraemer
from benchmarks.papers.claims import Claim, Cost, show, verdict
from benchmarks.papers.figures import FIGURES, Figure
from benchmarks.papers.intervals_or_signs import Run
from benchmarks.papers.who_wins import Running, cost

from millstream.model.time import INFINITY
from millstream.physical.batch import Batch

Changes = Counter[tuple[object, ...]]  # how often a row comes or goes, by row and instant


def collect(drive: Drive) -> list[Batch]:
    """What comes out, after what was there before."""
    batches: list[Batch] = []
    before = drive.sink

    def take(batch: Batch) -> None:
        if before is not None:
            before(batch)
        batches.append(batch)

    drive.sink = take
    return batches


def changes(batches: list[Batch], until: int) -> Changes:
    found: Changes = Counter()
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        rows = list(zip(*columns, strict=True))
        for times, sign in ((batch.start, 1), (batch.end, -1)):
            for row, at, weight in zip(rows, times.tolist(), batch.weight.tolist(), strict=True):
                if at < until:
                    found[*row, at] += sign * weight
    return Counter({key: count for key, count in found.items() if count})


def held(batch: Batch, at: int) -> int:
    return int(batch.weight[(batch.start <= at) & (at < batch.end)].sum())


# --- G5 -------------------------------------------------------------------------------------------

WINDOW, UNITS, BATCH = 100, 350, 30


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure.name} {figure.title}")
def test_the_plans_of_a_figure_keep_the_same_result(figure: Figure) -> None:
    frontier, answers = UNITS - 1, []
    for plan in figure.plans.values():
        running = Running.of(plan, WINDOW, UNITS)
        batches = collect(running.drive)
        running.drive.push_rows(UNITS, BATCH)
        answers.append(changes(batches, frontier))
        assert running.view.rows(frontier) == sum(held(batch, frontier) for batch in batches) > 0
    assert all(answer == answers[0] for answer in answers)


def test_lists_that_are_looked_through_more_often_keep_the_same() -> None:
    plan = FIGURES[0].plans["DIRECT"]
    often, seldom = (Running.of(plan, WINDOW, UNITS) for _ in range(2))
    for running in (often, seldom):
        running.drive.push_rows(200, BATCH)
    often.view.unit = plan.unit  # type: ignore[attr-defined]
    for running in (often, seldom):
        running.drive.push_rows(UNITS - 200, BATCH)
    assert often.view.rows(UNITS - 1) == seldom.view.rows(UNITS - 1)
    assert often.view.touched > 10 * seldom.view.touched


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure.name} {figure.title}")
def test_the_claims_of_a_figure_are_about_its_plans(figure: Figure) -> None:
    assert {name for claim in figure.claims for name in (claim.less, claim.more)} <= {*figure.plans}


def test_work_is_counted() -> None:
    found = cost(FIGURES[0].plans["NT"], 100)
    again = cost(FIGURES[0].plans["NT"], 100)
    assert found.work == again.work > 0


# --- K --------------------------------------------------------------------------------------------


def assert_same_answers(runs: Mapping[str, Run]) -> None:
    drives = {name: run.drive() for name, run in runs.items()}
    batches = {name: collect(drive) for name, drive in drives.items()}
    for drive in drives.values():
        drive.timed_until(1.0, 50)
    until = min(drive.graph.root.frontier for drive in drives.values())
    answers = [changes(found, until) for found in batches.values()]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]
    assert until < INFINITY


@pytest.mark.parametrize("query", kraemer.QUERIES)
def test_the_approaches_give_the_same_answers(query: str) -> None:
    runs = intervals_or_signs.runs_of_queries(kraemer.streams(bids=20_000))[query]
    few = {name: stream.slice(0, 600) for name, stream in runs["TIA"].streams.items()}
    assert_same_answers({name: Run(run.text, few, run.choices) for name, run in runs.items()})


def test_other_plans_give_the_same_answers() -> None:
    streams = kraemer.streams(bids=600)
    assert_same_answers(intervals_or_signs.runs_by_probing(streams))
    assert_same_answers(intervals_or_signs.runs_of_q5(streams))
    assert_same_answers(intervals_or_signs.runs_by_expiry(600))


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("less", "more", "found"),
    [
        ([1, 1], [2, 3], "agrees, 2.00 to 3.00 times"),
        ([2, 3], [1, 1], "DIFFERS, 0.33 to 0.50 times"),
        ([1, 2], [2, 1], "agrees in part, 0.50 to 2.00 times"),
        ([1, 2], [1, 2.1], "the same here"),
        ([0], [0], "the same here"),
    ],
)
def test_verdicts(less: list[float], more: list[float], found: str) -> None:
    costs = [{"a": float(a), "b": float(b)} for a, b in zip(less, more, strict=True)]
    assert verdict(Claim("a", "b").ratios(costs)) == found


def test_a_reason_is_given_where_orders_differ(capsys: pytest.CaptureFixture[str]) -> None:
    costs = [{"a": Cost(2.0, 10, 0), "b": Cost(1.0, 30, 0)}]
    claims = [Claim("a", "b", why="it is late"), Claim("b", "a", why="it is early")]
    show("A figure", "ms", ["here"], costs, claims)
    told = capsys.readouterr().out.splitlines()
    assert told[-4:-1] == [
        "  a < b at every window: DIFFERS, 0.50 times; work: agrees, 3.00 times",
        "    it is late",
        "  b < a at every window: agrees, 2.00 times; work: DIFFERS, 0.33 times",
    ]


def test_signed_plans_are_the_papers() -> None:
    """By hash and by loops, with joins: what is found at an instant is taken back too."""
    for name, run in intervals_or_signs.runs_by_probing(kraemer.streams(bids=2_000)).items():
        kinds = [type(vertex.node).__name__ for vertex in run.drive().graph.vertices]
        assert "Join" in kinds, name
        assert "LookupJoin" not in kinds, name
