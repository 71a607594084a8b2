"""Machine code reads no byte beyond its columns, wherever in memory they begin, and writes whole
arrays."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millstream.logical.evaluate import evaluator
from millstream.logical.expressions import Expression, Literal
from millstream.model.arrays import gather
from millstream.model.types import BIGINT, BOOLEAN, INT
from millstream.physical.batch import Batch
from millstream.physical.expressions import Selection, compile_expression
from millstream.physical.expressions.nodes import Direct
from millstream.physical.expressions.programs import Program
from physical.expression_samples import schema_of
from physical.formula_programs import long, of

SCHEMA = schema_of(BOOLEAN, INT, BIGINT)
FLAG, SMALL, LARGE = (field.column for field in SCHEMA)
EXPRESSIONS = [
    of("not", FLAG),
    of("*", SMALL, Literal(3, INT)),
    of("+", LARGE, long(1)),
    of("or", FLAG, of("<", SMALL, Literal(0, INT))),
    of("case", FLAG, LARGE, long(-1)),
]
CONDITION = of("and", FLAG, of(">", LARGE, long(2)))


def formula(expression: Expression) -> Any:
    root = compile_expression(expression, SCHEMA, {})._root
    assert isinstance(root, Direct)
    return root.formula


class Guarded:
    """Memory whose end is that of a page, and behind it one that may not be read."""

    def __init__(self) -> None:
        self.page = mmap.PAGESIZE
        self._memory = mmap.mmap(-1, 2 * self.page)
        self._first = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        beyond = ctypes.c_void_p(self._first + self.page)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        assert protect(beyond, ctypes.c_size_t(self.page), 0) == 0, os.strerror(ctypes.get_errno())

    def buffer(self, content: bytes) -> pa.Buffer:
        begin = self.page - len(content)
        self._memory[begin : self.page] = content
        return pa.foreign_buffer(self._first + begin, len(content), self)


def guarded(array: pa.Array) -> pa.Array:
    """The same values at the same offset, each buffer no longer than it must be."""
    rows, width = len(array) + array.offset, array.type.bit_width
    lengths = (rows + 7) // 8, (rows * width + 7) // 8
    buffers = [
        None if buffer is None else Guarded().buffer(buffer.to_pybytes()[:length])
        for buffer, length in zip(array.buffers(), lengths, strict=True)
    ]
    return pa.Array.from_buffers(array.type, len(array), buffers, -1, array.offset)


def drawn(rows: int, nulls: bool, offset: int) -> list[pa.Array]:
    random = np.random.default_rng([rows, nulls, offset])
    kinds = (
        (random.random(rows + offset) < 0.5).tolist(),
        random.integers(-9, 9, rows + offset).tolist(),
        random.integers(-9, 9, rows + offset).tolist(),
    )
    columns = []
    for values, field in zip(kinds, SCHEMA, strict=True):
        absent = random.random(rows + offset) < (0.3 if nulls else 0)
        plain = [None if none else value for value, none in zip(values, absent, strict=True)]
        columns.append(pa.array(plain, field.type).slice(offset))
    return columns


@pytest.mark.parametrize("nulls", [False, True])
def test_columns_that_begin_anywhere_and_end_with_their_memory(nulls: bool) -> None:
    program = Program([formula(expression) for expression in EXPRESSIONS])
    condition = formula(CONDITION)
    mask, selection = Program([condition]), Selection(condition)
    meanings = [evaluator(expression, SCHEMA, {}) for expression in (*EXPRESSIONS, CONDITION)]
    for rows, offset in product((1, 2, 7, 8, 9, 15, 16, 17, 40), range(18)):
        columns = [guarded(column) for column in drawn(rows, nulls, offset)]
        plain = list(zip(*(column.to_pylist() for column in columns), strict=True))
        *expected, holds = [[meaning(row) for row in plain] for meaning in meanings]
        values = program.values(columns, rows)
        assert values is not None
        for array in values:
            array.validate(full=True)
        assert [array.to_pylist() for array in values] == expected
        found, numbers = mask.mask(columns, rows), selection.rows(columns, rows)
        assert found is not None
        assert numbers is not None
        assert found.tolist() == [value is True for value in holds]
        assert numbers.tolist() == np.flatnonzero(found).tolist()
        for column in columns:
            assert gather(column, numbers).equals(column.take(pa.array(numbers)))


def test_what_stands_under_a_null_does_not_matter() -> None:
    """Neither does it exceed a limit, nor is it divided."""
    values = np.array([2**63 - 1, 5, -(2**63)] * 7)
    bits = np.packbits(values == 5, bitorder="little")
    column = pa.Array.from_buffers(BIGINT, len(values), [pa.py_buffer(bits), pa.py_buffer(values)])
    schema = schema_of(BIGINT)
    for expression, expected in (
        (of("*", schema[0].column, long(3)), 15),
        (of("%", schema[0].column, long(3)), 2),
    ):
        root = compile_expression(expression, schema, {})._root
        assert isinstance(root, Direct)
        found = Program([root.formula]).values([column], len(column))
        assert found is not None
        assert found[0].to_pylist() == [None, expected, None] * 7


def test_rows_that_are_all_null() -> None:
    columns = [pa.nulls(20, field.type) for field in SCHEMA]
    for expression in EXPRESSIONS:
        compiled = compile_expression(expression, SCHEMA, {})
        meaning = evaluator(expression, SCHEMA, {})((None,) * len(SCHEMA))
        values, failed = compiled.evaluate(columns, 20)
        assert failed is None
        assert values.to_pylist() == [meaning] * 20


def test_several_threads_make_and_run_code() -> None:
    schema = schema_of(BIGINT, BIGINT)
    x, y = (field.column for field in schema)
    columns = [pa.array(range(1000)), pa.array([None, 1] * 500)]
    ready = threading.Barrier(4)

    def work(number: int) -> bool:
        ready.wait()
        for depth in range(12):
            expression = of("+", x, y)
            for _ in range(depth):
                expression = of("-", expression, x)
            values, failed = compile_expression(expression, schema, {}).evaluate(columns, 1000)
            right = [None if n % 2 == 0 else n + 1 - depth * n for n in range(1000)]
            if failed is not None or values.to_pylist() != right:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


FORKING = """
import os, signal, threading
from array import array
from millstream.physical.expressions.loops import Gives, Loop, compiled
from millstream.physical.expressions.operations import add

def make(depth):
    steps = tuple((add, (step, step)) for step in range(depth))
    code = compiled(Loop(("int64",), (), steps, (), (depth,), Gives.VALUES))
    values, results = array("q", [7]), array("q", [0])
    assert code.call([1, values.buffer_info()[0], results.buffer_info()[0]]) == 0
    assert results[0] == 7 << depth

thread = threading.Thread(target=lambda: [make(depth) for depth in range(1, 40)])
thread.start()
for _ in range(8):
    child = os.fork()
    if not child:
        signal.alarm(20)
        make(50)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
thread.join()
print("done")
"""


def test_processes_forked_while_code_is_made() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.parametrize("number", [-1, 10, 10**9])
def test_rows_that_are_not_there(number: int) -> None:
    with_nulls = pa.array([None, *range(9)])
    batch = Batch.of([with_nulls], range(10), range(1, 11))
    for take in (batch.take, lambda index: gather(with_nulls, index)):
        with pytest.raises(IndexError):
            take(np.array([3, number]))
