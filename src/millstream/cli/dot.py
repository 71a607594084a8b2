"""Plans as graphs for Graphviz.

>>> quoted('a "b" \\\\ c')
'"a \\\\"b\\\\" \\\\\\\\ c"'
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.api.continuous import ContinuousQuery
    from millstream.api.pulls import PullQuery


def dot_graph(query: ContinuousQuery | PullQuery, physical: bool = False) -> str:
    """The operators, each with an edge to its consumer."""
    told = json.loads(query.explain("json", physical=physical))
    lines = [f"digraph {quoted(query.name)} {{", "  rankdir=BT;", "  node [shape=box];"]
    _Drawing(lines).draw(told["physical"] if physical else told)
    return "\n".join([*lines, "}"])


class _Drawing:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._count = 0
        self._shared: dict[str, str] = {}

    def draw(self, plan: Mapping[str, Any]) -> str:
        """Draw an operator and all below it; return the name of its node."""
        if plan["operator"] == "Shared":
            return self._shared[plan["shared"]]
        name = f"n{self._count}"
        self._count += 1
        if "shared" in plan:
            self._shared[plan["shared"]] = name
        self._lines.append(f"  {name} [label={quoted(_label(plan))}];")
        for input in plan["inputs"]:
            self._lines.append(f"  {self.draw(input)} -> {name};")
        return name


def _label(plan: Mapping[str, Any]) -> str:
    """The operator, then each of its properties and facts on a line."""
    facts = {key: plan[key] for key in ("pattern", "state") if plan.get(key)}
    told = {**plan["properties"], **facts}
    return "\n".join([plan["operator"], *(f"{key}={_text(value)}" for key, value in told.items())])


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def quoted(text: str) -> str:
    """A string of the DOT language: quotes and backslashes are escaped, lines end with `\\l`, which
    also left-aligns them."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\l") + ("\\l" if "\n" in text else "") + '"'
