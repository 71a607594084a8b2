"""The page on running queries is true: its programs run, and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent.parent / "docs" / "running.md"

_PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def test_programs_print_what_the_page_says() -> None:
    names: dict[str, Any] = {}
    programs = _PROGRAM.findall(PAGE.read_text(encoding="utf-8"))
    assert len(programs) == 4
    for program, printed in programs:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(program, PAGE.name, "exec"), names)
        if printed:
            assert output.getvalue() == printed
