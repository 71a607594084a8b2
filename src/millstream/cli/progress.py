"""What a long job shows on stderr while one waits: who works, how far it is, for how long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(told: Callable[[], str]) -> Iterator[None]:
    """Show what `told` tells, a few times a second, where stderr is a terminal; then it is gone."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TimeElapsedColumn
    from rich.text import Text

    class Told(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(told())

    console = Console(stderr=True)
    columns = (SpinnerColumn(), Told(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task("", total=None)
        yield
