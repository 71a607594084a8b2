"""The figures of A and G3: charts are whole, and what is counted is what was computed."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from benchmarks.papers import multi_joins, static_optimization
from benchmarks.papers.charts import Chart
from benchmarks.papers.multi_joins import Joined, counted, equal_streams
from benchmarks.papers.numbers import Findings, Number, as_json, as_text

from millstream.optimizer.multi_way_orders import MultiWay
from millstream.physical.joins.steps import new_first

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_chart_has_its_lines_within_its_axes(logarithmic: bool) -> None:
    lines = {"a < b": [(1, 5.0), (2, 50.0), (3, 4200.0)], "other": [(1, 7.0), (3, 9.0)]}
    chart = Chart("c", "A & B", "x", "y", lines, logarithmic, {"other": "a < b"})
    root = ElementTree.fromstring(chart.svg())
    drawn = root.findall(f"{SVG}polyline")
    assert len(drawn) == 2
    for line in drawn:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 76 <= x <= 490
            assert 48 <= y <= 348
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert {"A & B", "x", "y", "a < b", "other"} <= {*words}


@pytest.mark.parametrize("buckets", [1, 5])
def test_what_is_looked_at_is_what_g3_computes(buckets: int) -> None:
    graph, orders = equal_streams(3), new_first(range(3))
    found = counted(Joined(graph, orders, buckets=[buckets] * 3), 100)
    assert found == pytest.approx(MultiWay(graph, (float(buckets),) * 3).cost(orders), rel=0.15)


def test_tables_in_buckets_give_the_same_results() -> None:
    joins = [Joined(equal_streams(3), new_first(range(3)), 2, [b] * 3) for b in (1, 2, 30)]
    for joined in joins:
        joined.push(600)
    assert joins[0].results == joins[1].results == joins[2].results > 100


def test_the_papers_numbers_are_beside_ours() -> None:
    found = static_optimization.selections() + static_optimization.example()
    found += static_optimization.experiments(3) + multi_joins.tables()
    for number in found.numbers:
        if isinstance(number.paper, float | int) and number.where != "A figure 10":
            assert number.ours == pytest.approx(number.paper, rel=0.005), number.what
    assert json.loads(json.dumps(as_json(found)))["numbers"][0]["paper"] == 75.0
    assert {chart.name for chart in found.charts} == {
        "a-figure-6a", "a-figure-6b", "a-figure-7", "a-figure-8", "a-figure-9", "a-figure-10"
    }  # fmt: skip


def test_values_that_a_paper_does_not_print_are_not_told_as_its_own() -> None:
    found = static_optimization.selections() + static_optimization.example() + multi_joins.tables()
    said = {(number.where, number.what): (number.paper, number.ours) for number in found.numbers}
    computed = {
        ("A figure 1", "plan B, % used"): ("250 ms and 1 s", 125),
        ("A figure 6", "plan (a) at 17 ms, results/s"): (None, 265),
        ("A figure 6", "plan (b) at 17 ms, results/s"): (None, 263),
        ("A figure 6", "plan (c) at 17 ms, results/s"): (None, 588),
        ("A figure 6", "(b) is the worst from, ms"): ("17", 50 / 3),
        ("G3 table 5", "cost of the worst order"): ("nearly 90,000", 86_850),
        ("G3 table 6", "cost of the worst order"): ("nearly 650,000", 646_050),
    }
    for place, (paper, ours) in computed.items():
        assert said[place] == (paper, pytest.approx(ours, rel=0.005)), place


def test_bounds_of_planning_are_told_as_ours() -> None:
    for number in static_optimization.planning().numbers:
        assert number.paper is None
        assert number.note.startswith("bound of this project: ")


def test_numbers_as_text() -> None:
    numbers = [Number("here", "x", 1234.5, 0.125, "why"), Number("there", "y", None, 2.0)]
    assert as_text(Findings(numbers).numbers) == (
        "where  what  paper   here\nhere   x     1,234  0.125  why\nthere  y                2"
    )
