"""Which plan wins when: the plans that G5 compares, on its queries, and its ranking.

G5 §6, figures 9 to 17, over windows of 2,000 to 200,000 units: processor time per 1,000 rows, with
the result kept up to date (`views.py`), or bytes of the operators' state. Joins expire lazily, by 5
% of the window; everything else with each batch. G5 processes one row at a time; here a batch has
100 rows of each link, since single rows would measure the interpreter.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.driving import Drive, physical
from benchmarks.papers import golab_ozsu
from benchmarks.papers.claims import Cost, show
from benchmarks.papers.figures import FIGURES, Figure, Plan
from benchmarks.papers.views import ListView, View
from millstream.optimizer.choice import Choices
from millstream.physical.batch import Batch

BATCH = 100
FILL = 10_000  # rows per batch until the windows are full


@dataclass
class Running:
    """A running plan with its result."""

    drive: Drive
    view: View
    kept: int = 0  # elements that the view received

    @staticmethod
    def of(plan: Plan, window: int, units: int) -> Running:
        links = golab_ozsu.links(window, units / window)
        lazy = int(window * golab_ozsu.LAZY_EXPIRY)
        choices = Choices(approach=plan.approach, areas=replace(plan.areas, lazy=lazy))
        text = golab_ozsu.queries(window)[plan.query]
        chosen = physical(text, links, "ts", choices, plan.rewrite, emit="ELEMENTS")
        running = Running(Drive(chosen, links, "ts"), plan.view(chosen.types))
        running.drive.sink = running._take
        return running

    def _take(self, batch: Batch) -> None:
        self.view.take(batch)
        self.kept += len(batch)

    @property
    def elements(self) -> int:
        return self.kept + sum(vertex.rows_in for vertex in self.drive.graph.vertices)

    @property
    def looked_at(self) -> int:
        return self.drive.touched + self.view.touched


def _timed(plan: Plan, window: int) -> int:
    """The number of timed units: more than a calendar partition has, so that some are dropped; but
    few if every unit is equally expensive."""
    return max(4_000, window // 4) if plan.unit is None else max(1_000, window // 50)


def cost(plan: Plan, window: int, space: bool = False) -> Cost:
    """Per 1,000 rows, after the windows have been filled and half of them has passed."""
    full, timed = window * 3 // 2, _timed(plan, window)
    running = Running.of(plan, window, full + timed)
    running.drive.push_rows(full, FILL)
    if isinstance(running.view, ListView):
        running.view.unit = plan.unit
    elements, looked_at = running.elements, running.looked_at
    gc.collect()
    seconds = running.drive.timed(timed, BATCH)
    thousands = timed * len(running.drive.graph.sources) / 1_000
    return Cost(
        running.drive.nbytes / 1024 if space else 1e6 * seconds,
        (running.elements - elements) / thousands,
        (running.looked_at - looked_at) / thousands,
    )


def compare(figure: Figure, windows: Sequence[int]) -> list[dict[str, Cost]]:
    """By window and plan."""
    for plan in figure.plans.values():
        cost(plan, 200)  # compiles
    return [
        {name: cost(plan, window, figure.space) for name, plan in figure.plans.items()}
        for window in windows
    ]


def report(quick: bool = False) -> None:
    """Print every figure."""
    windows = golab_ozsu.WINDOWS[:3] if quick else golab_ozsu.WINDOWS
    print(f"G5: for 1,000 rows, in batches of {BATCH} of each link", end="\n\n")
    for figure in FIGURES:
        unit = "KiB of state" if figure.space else "ms"
        title = f"{figure.name}: {figure.title}"
        found = compare(figure, windows)
        labels = [f"{window:,}" for window in windows]
        show(title, unit, labels, found, figure.claims, work=not figure.space)
