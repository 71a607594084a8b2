"""Cases that once went wrong, each by the name of what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from millstream.logical.plan import Plan
from millstream.model.elements import Element
from millstream.model.time import INFINITY
from millstream.optimizer.choice import Approach, Choices, choose
from runtime.element_cases import at, check, plan_of
from runtime.random_plans import BIGINT, source
from runtime.schedule_agreement import Expected, Feed, Running
from runtime.schedules import Arrival


def test_a_new_group_holds_the_frontier_of_intervals_back() -> None:
    check(
        """
        Aggregate by=[k] compute=[count(*) AS v]
          Aggregate by=[S.k AS k] compute=[count(*) AS v]
            TimeWindow range=4
              Source stream=S
        """,
        S=[at(1, 1), at(2, 2), at(2, 1), at(5, 3), at(9, 1)],
    )


@pytest.mark.parametrize("rows", [[], [at(3, 1)]], ids=["no rows", "a row"])
def test_the_frontier_passes_a_total_over_nothing(rows: list[Element]) -> None:
    text = """
        Aggregate compute=[max(v) AS k, count(*) AS v]
          Aggregate compute=[count(*) AS v]
            TimeWindow range=4
              Source stream=S
        """
    check(text, S=rows)


def test_a_window_fills_up_in_order_over_rows_that_hold_for_ever() -> None:
    rows = [Element((k, 1), k, INFINITY) for k in (0, 1, 3)]
    check("TimeWindow range=6 granule=2\n  Source stream=I", I=rows)
    check(
        """
        Aggregate by=[I.k AS k] compute=[count(*) AS v]
          TimeWindow range=6 slide=4 granule=2
            Source stream=I
        """,
        I=rows,
    )


COUNTED = "CountWindow rows={rows} order=[I.k, I.v] slide={slide} granule=5\n  Source stream=I"


def test_a_count_window_settles_over_a_row_that_holds_for_ever() -> None:
    for rows, slide in ((1, 1), (3, 1), (3, 2)):
        text = COUNTED.format(rows=rows, slide=slide)
        assert check(text, I=[Element((1, 1), 2, INFINITY)]).answer


def test_a_count_window_never_settles_over_two_rows_that_it_takes_in_turn() -> None:
    rows = [Element((k, 1), 2, INFINITY) for k in (1, 2)]
    assert check(COUNTED.format(rows=2, slide=1), I=rows).answer
    assert check(COUNTED.format(rows=1, slide=3), I=rows).answer is None


@pytest.mark.parametrize("kind", ["left", "full", "semi", "anti"])
def test_pairs_that_fail_have_no_hidden_columns(kind: str) -> None:
    text = f"Join kind={kind} on=I.v DIV J.v > 0\n  Source stream=I\n  Source stream=J"
    inputs = {"I": [Element((1, 2), 0, 9)], "J": [Element((3, 0), 4, 7)]}
    running = run_in_order(plan_of(text), inputs)
    assert [*running.graph.context.errors] == [((1, 2, 3, 0), "division by zero")]
    check(text, **inputs)


def test_a_row_that_cannot_be_told_is_not_alone() -> None:
    check(
        """
        Join kind=anti on=I.k = J.k AND I.v DIV J.v > 0
          Source stream=I
          Source stream=J
        """,
        I=[Element((None, 2), 0, 9), Element((1, 2), 0, 9), Element((2, 2), 0, 9)],
        J=[Element((None, 0), 2, 5), Element((1, 0), 3, 6)],
    )


def test_totals_make_no_errors_before_time_begins() -> None:
    text = """
        Map columns=[100 DIV v AS share]
          Aggregate compute=[count(*) AS v]
            TimeWindow range=UNBOUNDED
              Source stream=S
        """
    for approach in Approach:
        running = run_in_order(plan_of(text), {"S": [at(3, 1), at(5, 1)]}, approach)
        assert not running.graph.context.errors


@pytest.mark.parametrize("approach", Approach)
@pytest.mark.parametrize("streams", ["SR", "RS"])
def test_time_begins_with_a_source_that_comes_last(streams: str, approach: Approach) -> None:
    plan = plan_of(
        """
        Union
          TimeWindow range=4 slide=2 granule=2
            Aggregate compute=[max(S.k) AS k, count(*) AS v]
              TimeWindow range=3
                Source stream=S
          TimeWindow range=2
            Source stream=R
        """
    )
    inputs = {"S": [at(10, 1), at(15, 1)], "R": [at(1, 2), at(20, 2)]}
    running = run_in_order(plan, {name: inputs[name] for name in streams}, approach)
    assert running.finished().answer == Expected(plan, inputs).answer


def run_in_order(
    plan: Plan, inputs: Mapping[str, Sequence[Element]], approach: Approach = Approach.HYBRID
) -> Running:
    """One input after the other."""
    running = Running(choose(plan, "FINAL", Choices(approach=approach)))
    feeds = {name: Feed(source(name, BIGINT), rows) for name, rows in inputs.items()}
    for name, rows in inputs.items():
        running.push(feeds[name], Arrival(name, tuple(range(len(rows))), rows[-1].start))
    for name, feed in feeds.items():
        running.push(feed, Arrival(name, (), INFINITY))
    return running
