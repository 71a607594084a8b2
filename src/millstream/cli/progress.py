"""Progress of a long job on stderr: what runs, how far it is, and for how long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(told: Callable[[], str]) -> Iterator[None]:
    """If stderr is a terminal, show the text of `told` a few times per second, then erase it."""
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
