"""The layers of ARCHITECTURE.md hold: every import, also inside functions and for types alone, goes
to the same layer or to one that the table allows."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import millstream

SOURCE = Path(millstream.__file__).parent

#: What each layer may import; what these may import is not meant.
ALLOWED = {
    "model": "",
    "logical": "model",
    "sql": "model logical",
    "physical": "model logical",
    "optimizer": "model logical physical",
    "checkpoint": "model logical physical",
    "connectors": "model logical physical checkpoint",
    "runtime": "model logical physical checkpoint connectors",
    "relations": "model logical physical checkpoint connectors runtime",
    "fragments": "model logical physical checkpoint connectors runtime",
    "spark": "model logical physical optimizer checkpoint connectors runtime fragments",
    "api": "model logical sql physical optimizer checkpoint connectors runtime relations fragments "
    "spark",
    "cli": "model logical sql physical optimizer checkpoint connectors runtime relations fragments "
    "spark api millstream",
    "papers": "model logical physical optimizer",  # models that the product does not run
    "millstream": "model connectors runtime api cli",  # __init__ and __main__
}


#: Where the product begins: what is imported, and the processes that it starts.
ROOTS = ("millstream", "millstream.__main__", "millstream.spark.keeper_process")

#: Connectors are loaded by the names of their modules.
PLACES = tuple(f"millstream.connectors.{folder}" for folder in ("", "sinks.", "tables."))

#: Modules that nothing in the product uses yet, and the capability that will.
COMING = {"millstream.sql.plan_text": "plans posed as text"}


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = ["millstream", *path.relative_to(SOURCE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def nodes(module: str) -> list[ast.AST]:
    return [*ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8")))]


def imported(module: str) -> Iterator[str]:
    """The modules that a module imports, wherever the statement stands."""
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            assert node.module is not None
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules() else node.module


@cache
def graph() -> dict[str, set[str]]:
    return {name: {*imported(name)} & {*modules()} - {name} for name in modules()}


def packages(module: str) -> set[str]:
    """The packages that importing a module imports as well, without the root."""
    parts = module.split(".")
    return {".".join(parts[:count]) for count in range(2, len(parts))}


def layer(module: str) -> str:
    parts = module.split(".")
    is_root = len(parts) == 1 or parts[1] == "__main__"
    return "millstream" if is_root else parts[1]


def test_the_root_has_no_modules_but_its_own() -> None:
    assert {path.name for path in SOURCE.glob("*.py")} == {"__init__.py", "__main__.py"}
    assert {layer(module) for module in modules()} == {*ALLOWED}


def test_no_layer_imports_one_above_it() -> None:
    against = [
        f"{module} imports {other}"
        for module, others in graph().items()
        for other in sorted(others)
        if layer(other) not in {layer(module), *ALLOWED[layer(module)].split()}
    ]
    assert against == []


def test_no_modules_import_each_other() -> None:
    """Taking away what imports nothing that is left, or is not imported, takes all away. A module
    of another package imports that package too."""
    left = {
        name: others.union(*map(packages, others)) - packages(name) - {name}
        for name, others in graph().items()
    }
    while True:
        used = {other for others in left.values() for other in others}
        kept = {name for name, others in left.items() if others and name in used}
        if len(kept) == len(left):
            break
        left = {name: left[name] & kept for name in kept}
    assert left == {}


def test_only_names_of_users_are_imported_by_name() -> None:
    """Other tests read import statements; connectors and the public names are found by name."""
    by_name = {
        module
        for module in modules()
        if "runpy" in imported(module)
        or any(_name(n) in ("import_module", "__import__") for n in nodes(module))
    }
    assert by_name == {"millstream", "millstream.connectors.registry"}


def _name(node: ast.AST) -> str | None:
    """The name that an expression ends in."""
    return getattr(node, "id", None) or getattr(node, "attr", None)


def test_every_module_is_used_by_the_product() -> None:
    """Except for models of the papers, and what a capability still to come needs."""
    reached: set[str] = set()
    sinks = [module for module in modules() if module.startswith("millstream.connectors.sinks.")]
    ahead = [*ROOTS, *COMING, *sinks]  # a sink may be named as its module
    while ahead:
        module = ahead.pop()
        if module in modules() and module not in reached:
            reached.add(module)
            ahead += [*graph()[module], *loaded_by_name(module), module.rpartition(".")[0]]
    unused = {module for module in modules() if layer(module) != "papers"} - reached
    assert unused == set()


def loaded_by_name(module: str) -> Iterator[str]:
    """The modules that a module may load by a name in a string."""
    for node in nodes(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (f"{place}{node.value}" for place in PLACES)


def test_only_sql_imports_the_parser() -> None:
    for module in modules():
        parses = any(name.split(".")[0] == "sqlglot" for name in imported(module))
        assert not parses or layer(module) == "sql", module


def test_a_keeper_loads_no_parser() -> None:
    """Nor does `import millstream` load what takes long."""
    code = (
        "import sys, millstream; assert not {'pyarrow', 'numba', 'pyspark'} & {*sys.modules}; "
        "import millstream.spark.keeper_process, millstream.fragments.tasks; "
        "assert not {'sqlglot', 'pyspark', 'pandas'} & {*sys.modules}, sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
