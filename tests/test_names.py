"""Names mean one thing: a public class name is defined once in the package. Tests share helpers."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import millstream
from millstream.logical.plan import Plan
from millstream.physical.operator import PhysicalPlan

SOURCE = Path(millstream.__file__).parent


def public_classes() -> dict[str, list[str]]:
    """The modules that define each public class name at their top level."""
    found = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return found


def is_one_operator(name: str, modules: list[str]) -> bool:
    """Whether two classes are the logical and the physical node of the same operator."""
    if len(modules) != 2 or modules[0] != "logical.plan":
        return False
    logical, physical = (_class(module, name) for module in modules)
    return issubclass(logical, Plan) and issubclass(physical, PhysicalPlan)


def _class(module: str, name: str) -> type:
    found = getattr(__import__(f"millstream.{module}", fromlist=[name]), name)
    assert isinstance(found, type)
    return found


def test_a_public_class_name_is_defined_once() -> None:
    twice = {name: modules for name, modules in public_classes().items() if len(modules) > 1}
    assert {name: m for name, m in twice.items() if not is_one_operator(name, m)} == {}


def test_no_function_takes_many_parameters() -> None:
    """Except compiled kernels: with arrays in a tuple they would count references at every use."""
    many = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or _is_compiled(node):
                continue
            own = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if len([each for each in own if each.arg != "self"]) > 12:
                many.append(f"{path.relative_to(SOURCE)}: {node.name}")
    assert many == []


def _is_compiled(node: ast.FunctionDef) -> bool:
    decorators = " ".join(map(ast.unparse, node.decorator_list))
    return any(name in decorators for name in ("njit", "in_place", "compiled"))


def test_no_test_module_imports_another() -> None:
    """What tests share is in modules without tests."""
    folder = Path(__file__).parent
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            else:
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.startswith("test_") for name in names), path.relative_to(folder)
