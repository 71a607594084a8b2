"""What `explain` tells of costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import millstream as ms
from millstream.cli.main import run_command

STREAMS = """
CREATE STREAM A (ts TIMESTAMP, k BIGINT, v DOUBLE) SOURCE f() ORDERED BY ts
    WITH (rate = 100, distinct(k) = 50, size = 24);
CREATE STREAM B (ts TIMESTAMP, k BIGINT, v DOUBLE) SOURCE f() ORDERED BY ts
    WITH (rate = 100, distinct(k) = 50, min(v) = 0, max(v) = 10);
"""
JOIN = (
    "SELECT A.v, B.v AS w FROM A WINDOW(RANGE 10 SECONDS), B WINDOW(RANGE 10 SECONDS) "
    "WHERE A.k = B.k"
)


@pytest.fixture
def query() -> ms.Query:
    session = ms.Session(engine="local")
    session.sql(STREAMS + JOIN)
    return next(iter(session.queries.values()))


def test_a_line_for_each_operator(query: ms.Query) -> None:
    logical, costs, assumed = query.explain(costs=True).split("\n\n")
    assert logical == query.explain()
    lines = costs.splitlines()
    assert lines[0].split() == ["rate", "valid", "rows", "memory", "processor", "operator"]
    assert lines[2].split()[:6] == ["4,000/s", "5", "s", "2,001", "119", "KiB"]
    assert lines[-1].endswith("  in all")
    places = {line.index("%") for line in lines[1:]}
    assert len(places) == 1, "columns stand below each other"
    assert assumed == ("assumed by default: A WITH (distinct(v) = 100); B WITH (distinct(v) = 100)")


def test_as_json(query: ms.Query) -> None:
    told = json.loads(query.explain("json", costs=True))
    assert set(told) == {"logical", "costs"}
    costs = told["costs"]
    assert costs["rows"] == pytest.approx(2001)
    assert costs["assumed"] == ["A WITH (distinct(v) = 100)", "B WITH (distinct(v) = 100)"]
    join = costs["plan"]["inputs"][0]
    assert join["operator"] == "Join"
    assert join["rate"] == pytest.approx(4000)
    assert join["valid"] == pytest.approx(5_000_000)
    both = json.loads(query.explain("json", costs=True, physical=True))
    assert set(both) == {"logical", "physical", "costs"}


def test_rows_in_memory_are_looked_at() -> None:
    session = ms.Session(engine="local")
    rows = [{"t": 2 * i, "k": i % 5} for i in range(1000)]
    session.stream("s", rows, time="t")
    estimates = session.sql("SELECT k FROM s WINDOW(RANGE 10) WHERE k < 2").estimates()
    assert estimates.output.elements == pytest.approx(0.2, rel=0.01)
    assert estimates.output.length == 10
    known = estimates.statistics
    assert known.stream("s").column("k").distinct == pytest.approx(5)
    assert known.stream("s").regular
    assert list(known.assumed("s", ())) == []


def test_on_raw_time_a_unit_takes_so_long() -> None:
    session = ms.Session(engine="local")
    session.stream("s", [{"t": 1, "x": 1}, {"t": 3, "x": 2}], time="t")
    text = session.sql("SELECT x FROM s WINDOW(RANGE 5)").explain(costs=True)
    assert "0.5/unit" in text
    assert "%" not in text


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("join.sql").write_text(STREAMS + JOIN + ";\n")
    assert run_command(["explain", "--costs", "--engine", "local", "join.sql"]) == 0
    assert "4,000/s" in capsys.readouterr().out
    assert run_command(["explain", "--costs", "--json", "--engine", "local", "join.sql"]) == 0
    assert json.loads(capsys.readouterr().out)["costs"]["rows"] == pytest.approx(2001)
