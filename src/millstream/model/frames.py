"""Rows for other libraries: as Arrow tables, pandas frames and Polars frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from millstream.model.errors import QueryError


class HasRows(ABC):
    """An object with rows. Every library that reads Arrow's C stream interface accepts it, such as
    DuckDB, Polars and pandas."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""

    def to_pandas(self) -> Any:
        """The rows as a pandas frame."""
        rows = self.to_arrow()
        try:
            return rows.to_pandas()
        except ImportError:
            raise _missing("pandas") from None

    def to_polars(self) -> Any:
        """The rows as a Polars frame."""
        try:
            import polars
        except ImportError:
            raise _missing("polars") from None
        return polars.from_arrow(self.to_arrow())

    @property
    def _arrow_schema(self) -> pa.Schema:
        """The schema of the rows; libraries request it before the rows."""
        return self.to_arrow().schema

    def __arrow_c_schema__(self) -> object:
        return self._arrow_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def _missing(package: str) -> QueryError:
    return QueryError(f"{package} is not installed", help=f"install it: pip install {package}")
