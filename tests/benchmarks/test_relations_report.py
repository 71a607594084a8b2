"""The report on tables: what it measures is what it says."""

from __future__ import annotations

import pytest

from benchmarks import relations
from millstream.physical.operators.join import JoinOperator
from millstream.physical.operators.lookup_join import LookupJoinOperator


@pytest.mark.parametrize(
    ("sql", "changes", "operator"),
    [
        (relations.LOOKUP, "non retroactive", LookupJoinOperator),
        (relations.WINDOW, "retroactive", JoinOperator),
    ],
)
def test_tables_are_looked_up_and_changed(sql: str, changes: str, operator: type) -> None:
    trial = relations.Trial(sql, changes, rows=1_000)
    for _ in range(3):
        trial.go_on(100, 10)
    (join,) = [v.operator for v in trial.graph.vertices if isinstance(v.operator, operator)]
    window = 300 if changes == "retroactive" else 0
    assert join.rows - window in range(1_000, 1_031)
    assert min(trial.seconds["A"] + trial.seconds["R"]) > 0
