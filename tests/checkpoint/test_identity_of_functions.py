"""A checkpoint goes on with the functions that it began with, and with no others."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SETUP = """
import collections, dataclasses, functools, math, re, threading, types
import pyarrow as pa, pyarrow.compute as pc
import numpy as np
"""

# The definition of `f`, each the same in every process.
UNCHANGED = {
    "a plain function": "def f(x): return pc.add(x, 1)",
    "a set in the code": "def f(x): return x if 'a' in {'a', 'b', 'c', 'd'} else None",
    "a global set": "KNOWN = {'a', 'b', 'c', 'd', ('e', 1)}\ndef f(x): return x in KNOWN",
    "a partial": "f = functools.partial(pc.add, pa.scalar(1))",
    "a partial of a partial": "f = functools.partial(functools.partial(max, 1), key={'c'})",
    "a closure": "def make(k):\n    def f(x): return pc.add(x, k)\n    return f\nf = make({1, 2})",
    "a callable": "class F:\n    def __init__(self, k): self.k = k\n"
    "    def __call__(self, x): return pc.add(x, self.k)\nf = F(frozenset('abc'))",
    "a callable with slots": "class F:\n    __slots__ = ('k',)\n"
    "    def __init__(self, k): self.k = k\n    def __call__(self, x): return x\nf = F(2)",
    "a bound method": "class F:\n    k = 3\n    def go(self, x): return self.k\nf = F().go",
    "a dataclass": "@dataclasses.dataclass\nclass F:\n    k: int\n"
    "    def __call__(self, x): return x\nf = F(2)",
    "a C function": "f = math.sqrt",
    "a function of a library": "f = pc.add",
    "a lock": "LOCK = threading.Lock()\ndef f(x):\n    with LOCK: return x",
    "an array": "WEIGHTS = np.arange(5)\ndef f(x): return x * WEIGHTS[0]",
    "functions that call each other": "def f(x): return g(x) if x else x\ndef g(x): return f(x)",
    "a lambda in a default": "def f(x, g=lambda y: y + 1): return g(x)",
    "a set that contains what holds it": "class F:\n    def __init__(self): self.all = {self}\n"
    "    def __call__(self, x): return x\nf = F()",
    "an array of objects": "W = np.array(['a' * 50, {'b', 'c', 'd'}], object)\ndef f(x): return W",
    "a read-only view of a dict": "K = types.MappingProxyType({'a': {'b', 'c', 'd'}})\n"
    "def f(x): return K",
    "a chain of dicts": "K = collections.ChainMap({'a': {'b', 'c', 'd'}})\ndef f(x): return K",
    "a namespace": "K = types.SimpleNamespace(a={'b', 'c', 'd'})\ndef f(x): return K",
    "a queue": "K = collections.deque([{'b', 'c', 'd'}])\ndef f(x): return K",
}

CHANGED = {
    "a constant": ("def f(x): return pc.add(x, 1)", "def f(x): return pc.add(x, 2)"),
    "a default": ("def f(x, k=1): return pc.add(x, k)", "def f(x, k=2): return pc.add(x, k)"),
    "a keyword default": ("def f(x, *, k=1): return x", "def f(x, *, k=2): return x"),
    "a global": ("K = 1\ndef f(x): return pc.add(x, K)", "K = 2\ndef f(x): return pc.add(x, K)"),
    "a function that it calls": (
        "def g(x): return x\ndef f(x): return g(x)",
        "def g(x): return pc.add(x, 1)\ndef f(x): return g(x)",
    ),
    "a global of an inner function": (
        "K = 1\ndef f(x): return [y + K for y in x]",
        "K = 2\ndef f(x): return [y + K for y in x]",
    ),
    "what a partial holds": ("f = functools.partial(pow, 2)", "f = functools.partial(pow, 3)"),
    "what a closure holds": ("f = (lambda k: lambda x: k)(1)", "f = (lambda k: lambda x: k)(2)"),
    "the state of a callable": (
        "class F:\n    def __call__(self, x): return x\nf = F(); f.k = 1",
        "class F:\n    def __call__(self, x): return x\nf = F(); f.k = 2",
    ),
    "the code of a callable": (
        "class F:\n    def __call__(self, x): return x\nf = F()",
        "class F:\n    def __call__(self, x): return None\nf = F()",
    ),
    "the base of a class": (
        "class B:\n    def go(self, x): return x\nclass F(B):\n    pass\nf = F().go",
        "class B:\n    def go(self, x): return 1\nclass F(B):\n    pass\nf = F().go",
    ),
    "an item of a set": ("K = {1, 2}\ndef f(x): return K", "K = {1, 3}\ndef f(x): return K"),
    "an array": (
        "W = np.arange(5)\ndef f(x): return W",
        "W = np.arange(5) * 2\ndef f(x): return W",
    ),
    "another function of a library": ("f = pc.add", "f = pc.subtract"),
    "what a cache wraps": (
        "f = functools.lru_cache(lambda x: x + 1)",
        "f = functools.lru_cache(lambda x: x + 2)",
    ),
    "what a cached property computes": (
        "class F:\n    k = functools.cached_property(lambda self: 1)\n"
        "    def __call__(self, x): return self.k\nf = F()",
        "class F:\n    k = functools.cached_property(lambda self: 2)\n"
        "    def __call__(self, x): return self.k\nf = F()",
    ),
    "what a vectorized function wraps": (
        "f = np.vectorize(lambda x: x + 1)",
        "f = np.vectorize(lambda x: x + 2)",
    ),
    "a function by type": (
        "f = functools.singledispatch(lambda x: x + 1)",
        "f = functools.singledispatch(lambda x: x + 2)",
    ),
    "the object of a library method": ("f = {'a': 1}.get", "f = {'a': 2}.get"),
    "the object of an operator": ("f = (1).__add__", "f = (2).__add__"),
    "an attribute of a function": (
        "def f(x): return f.k\nf.k = 1",
        "def f(x): return f.k\nf.k = 2",
    ),
    "a private slot": (
        "class F:\n    __slots__ = ('__k',)\n    def __init__(self, k): self.__k = k\n"
        "    def __call__(self, x): return self.__k\nf = F(1)",
        "class F:\n    __slots__ = ('__k',)\n    def __init__(self, k): self.__k = k\n"
        "    def __call__(self, x): return self.__k\nf = F(2)",
    ),
    "the code of a dict that can be called": (
        "class F(dict):\n    def __call__(self, x): return self.get(x)\nf = F(a=1)",
        "class F(dict):\n    def __call__(self, x): return self[x]\nf = F(a=1)",
    ),
    "the end of a long pattern": (
        "K = re.compile('a' * 300 + 'b')\ndef f(x): return K.match(x)",
        "K = re.compile('a' * 300 + 'c')\ndef f(x): return K.match(x)",
    ),
    "the middle of Arrow data": (
        "K = pa.array(range(100))\ndef f(x): return K",
        "K = pa.array([50 if i == 51 else i for i in range(100)])\ndef f(x): return K",
    ),
    "the middle of a table": (
        "K = pa.table({'k': range(100)})\ndef f(x): return K",
        "K = pa.table({'k': [50 if i == 51 else i for i in range(100)]})\ndef f(x): return K",
    ),
}


def fingerprints(definitions: list[str], seed: int) -> list[str]:
    """Of `f` after each definition, in a process of its own."""
    program = SETUP + textwrap.dedent(
        f"""
        from millstream.model.fingerprint import fingerprint
        for definition in {definitions!r}:
            names = dict(globals())
            exec(definition, names)
            print(fingerprint(names["f"]))
        """
    )
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_unchanged_functions_are_the_same_after_a_restart() -> None:
    before, after = (fingerprints(list(UNCHANGED.values()), seed) for seed in (1, 2))
    pairs = zip(UNCHANGED, before, after, strict=True)
    assert [name for name, one, other in pairs if one != other] == []


def test_changed_functions_are_noticed() -> None:
    before = fingerprints([one for one, _ in CHANGED.values()], 1)
    after = fingerprints([other for _, other in CHANGED.values()], 1)
    pairs = zip(CHANGED, before, after, strict=True)
    assert [name for name, one, other in pairs if one == other] == []


def test_comments_and_docstrings_do_not_matter() -> None:
    one, other = fingerprints(
        [
            "def f(x):\n    'One.'\n    return x",
            "\n\ndef f(x):\n    'Two.'\n    # why\n    return x",
        ],
        1,
    )
    assert one == other


def test_a_module_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the code names in it counts."""
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    uses = ["import helpers_of_a_test as h\ndef f(x): return h.g(x)"]
    told = []
    for body in ("return x", "return x + 1", "return x + 1\ndef other(): pass"):
        (tmp_path / "helpers_of_a_test.py").write_text(f"def g(x): {body}\n")
        told += fingerprints(uses, 1)
    assert told[0] != told[1] == told[2]
