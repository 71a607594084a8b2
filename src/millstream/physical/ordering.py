"""SQL's order of rows as int64 words: NULL first, NaN after all numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.arrays import gather, int64, is_plain, validity, view
from millstream.model.long_texts import is_text
from millstream.model.values import order_key, to_plain
from millstream.physical.batch import Batch, Ints, LazyColumn, are_ones, numbers
from millstream.physical.kernels.grouped_sorting import (
    groups_of,
    same_times,
    sort_groups,
    split_groups,
)
from millstream.physical.kernels.scans import ascends, climbs


def order_words(array: pa.Array) -> Iterator[Ints]:
    """The words that order the values of one batch, most significant first."""
    valid = validity(array)
    if valid is not None:
        yield valid.astype(np.int64)
    type = array.type
    if pa.types.is_floating(type):
        yield _float_order(array)
    elif pa.types.is_boolean(type) or is_plain(type):
        yield int64(array)
    elif pa.types.is_null(type):
        yield np.zeros(len(array), np.int64)
    elif is_text(type) or pa.types.is_decimal(type):
        yield _ranks(array)
    else:
        keys = [order_key(value) for value in to_plain(array, type)]
        ranks_of = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        yield np.array([ranks_of[key] for key in keys], np.int64)


def has_one_word(type: pa.DataType) -> bool:
    """Whether one word, besides that of NULL, orders the values across batches."""
    return is_plain(type) or bool(pa.types.is_boolean(type))


def _ranks(array: pa.Array) -> Ints:
    """The ranks of values among the distinct values of the array; 0 for NULL."""
    encoded = array.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    ranks[-1] = 0
    codes: Ints = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
    return ranks[codes]


def _float_order(array: pa.Array) -> Ints:
    """Doubles as integers with the same order."""
    values = view(array).view(np.float32 if array.type.bit_width == 32 else np.float64)
    values = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    ordered: Ints = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    valid = validity(array)
    if valid is not None:
        ordered[~valid] = 0
    return ordered


def in_order(batch: Batch) -> Batch:
    """Sorted by start, end and row. Only elements with equal starts are compared further, and only
    up to the first column that differs."""
    start, end = batch.start, batch.end
    order = None
    if not ascends(start):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    readers: list[_Reader] = [partial(_words_of, column) for column in batch.columns.lazy]
    alike = same_times(start, end)
    if alike is None:
        alike = start[1:] == start[:-1]
        readers.insert(0, lambda rows: [batch.end[rows]])
    if alike.any():
        tied, group = groups_of(alike)
        rows = tied if order is None else order[tied]
        ordered = _sorted_ties(rows, group, readers)
        if ordered is not rows:
            order = np.arange(len(batch)) if order is None else order
            order[tied] = ordered
    return batch if order is None else batch.take(order)


_Reader: TypeAlias = Callable[[Ints], Sequence[Ints]]  # the words of some rows


def _words_of(column: LazyColumn, rows: Ints) -> list[Ints]:
    return [*order_words(gather(column.array, rows))]


def _sorted_ties(rows: Ints, group: Ints, readers: Iterable[_Reader]) -> Ints:
    """Rows by group, which ascends, then by words; the given array if it is sorted already."""
    given = found = rows
    places = numbers(len(rows))  # positions of the rows that are still tied
    for read in readers:
        words = read(rows)
        order = np.arange(len(rows))
        moved = [sort_groups(group, word, order) for word in reversed(words)]  # stable sorts
        if any(moved):
            found = given.copy() if found is given else found
            rows = rows[order]
            found[places] = rows
        same = np.ones(max(len(rows) - 1, 0), np.bool_)
        for word in words:
            split_groups(group, word, order, same)
        if not same.any():
            break
        tied, group = groups_of(same)
        rows, places = rows[tied], places[tied]
    return found


def sorted_rows(times: Ints, columns: Sequence[pa.Array]) -> Ints | None:
    """The rows in order of time, then of the columns; None if they are sorted already."""
    if climbs(times):
        return None
    words = [times, *(word for column in columns for word in order_words(column))]
    if _is_sorted(words):
        return None
    return np.lexsort(words[::-1])


def one_by_one(batch: Batch, columns: Sequence[pa.Array]) -> Batch:
    """Every row as often as its weight, in order of start, then of the columns."""
    order = sorted_rows(batch.start, columns)
    batch = batch if order is None else batch.take(order)
    if not are_ones(batch.weight):
        batch = batch.take(np.repeat(np.arange(len(batch)), batch.weight))
    return batch


def _is_sorted(words: Sequence[Ints]) -> bool:
    tied = np.ones(max(len(words[0]) - 1, 0), np.bool_)  # with the previous row, so far
    for word in words:
        if (tied & (word[1:] < word[:-1])).any():
            return False
        tied &= word[1:] == word[:-1]
    return True
