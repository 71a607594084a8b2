"""Names in the catalog, and who depends on whom."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.logical.catalog import Catalog, DerivedStream, RegisteredQuery, Stream, column_named
from millstream.logical.plan import Field, Lifetime
from millstream.model.names import Name
from millstream.model.time import RAW_TIME, TIMESTAMP_TIME
from millstream.model.types import BIGINT, INT

COLUMNS = (Field("t", BIGINT), Field("x", INT))


def stream(name: str) -> Stream:
    return Stream(name, COLUMNS, RAW_TIME, ("t",))


def catalog_of(*names: str) -> Catalog:
    catalog = Catalog()
    for name in names:
        catalog.add_stream(stream(name))
    return catalog


def query(name: str, *depends_on: str) -> RegisteredQuery:
    return RegisteredQuery(name, stream("Bid").source("Bid"), "…", frozenset(depends_on))


def message(error: pytest.ExceptionInfo[ms.CatalogError]) -> str:
    return error.value.diagnostic.message


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [Name("Bid"), Name("bid"), Name("BID"), Name("Bid", quoted=True)])
def test_a_stream_is_found_without_regard_to_case(name: Name) -> None:
    assert catalog_of("Auction", "Bid").stream(name).name == "Bid"


def test_a_quoted_name_is_exact() -> None:
    catalog = catalog_of("Bid")
    assert catalog.find_stream(Name("bid", quoted=True)) is None
    with pytest.raises(ms.CatalogError) as error:
        catalog.stream(Name("bid", quoted=True))
    assert message(error) == 'stream "bid" does not exist'
    assert error.value.diagnostic.help == 'did you mean "Bid"?'


def test_names_are_unique_without_regard_to_case() -> None:
    catalog = catalog_of("Bid")
    with pytest.raises(ms.CatalogError) as error:
        catalog.add_stream(stream("BID"))
    assert message(error) == 'stream "Bid" exists already'
    assert [s.name for s in catalog.streams] == ["Bid"]


def test_an_empty_catalog_says_what_to_do() -> None:
    with pytest.raises(ms.CatalogError) as error:
        Catalog().stream(Name("Bid"))
    assert error.value.diagnostic.help == "no stream is registered: write CREATE STREAM first"


def test_streams_keep_the_order_of_their_registration() -> None:
    assert [s.name for s in catalog_of("b", "c", "a").streams] == ["b", "c", "a"]


def test_column_named() -> None:
    assert column_named(COLUMNS, Name("X"), "Bid") == COLUMNS[1]
    with pytest.raises(ms.CatalogError) as error:
        column_named(COLUMNS, Name("X", quoted=True), "Bid")
    assert message(error) == 'column "X" does not exist in stream "Bid"'


# --- streams --------------------------------------------------------------------------------------


def test_a_stream_with_two_time_columns_brings_its_intervals() -> None:
    assert stream("Bid").lifetime is Lifetime.INSTANT
    assert Stream("P", COLUMNS, TIMESTAMP_TIME, ("t", "x")).lifetime is Lifetime.INTERVAL
    assert Stream("A", COLUMNS, TIMESTAMP_TIME).lifetime is Lifetime.INSTANT


def test_the_source_of_a_stream_has_its_alias() -> None:
    source = stream("Bid").source("b")
    assert (source.stream, source.alias) == ("Bid", "b")
    assert [field.key for field in source.schema] == [("b", "t"), ("b", "x")]


# --- who depends on whom --------------------------------------------------------------------------


def dependent() -> Catalog:
    catalog = catalog_of("Bid", "Auction")
    plan = stream("Bid").source("Bid")
    catalog.add_stream(DerivedStream("Cheap", plan), depends_on=["Bid"])
    catalog.add_stream(DerivedStream("Cheapest", plan), depends_on=["Cheap"])
    catalog.add_query(query("query_1", "Bid", "Cheap"))
    return catalog


def test_dependants_are_the_direct_ones() -> None:
    catalog = dependent()
    assert catalog.dependants("Bid") == ["Cheap", "query_1"]
    assert catalog.dependants("Cheap") == ["Cheapest", "query_1"]
    assert catalog.dependants("Auction") == []


def test_what_is_in_use_cannot_be_dropped() -> None:
    catalog = dependent()
    with pytest.raises(ms.CatalogError) as error:
        catalog.drop_stream(Name("bid"))
    assert message(error) == 'stream "Bid" is in use by "Cheap" and "query_1"'
    assert len(catalog.streams) == 4


def test_everything_can_be_dropped_from_the_top() -> None:
    catalog = dependent()
    assert catalog.drop_query(Name("QUERY_1")).name == "query_1"
    for name in ("cheapest", "cheap", "bid", "auction"):
        catalog.drop_stream(Name(name))
    assert catalog.streams == []
    assert catalog.queries == []


def test_a_dropped_name_is_free_again() -> None:
    catalog = catalog_of("Bid")
    catalog.drop_stream(Name("Bid"))
    catalog.add_stream(stream("bid"))
    assert [s.name for s in catalog.streams] == ["bid"]
    assert catalog.dependants("bid") == []


# --- queries --------------------------------------------------------------------------------------


def test_queries_are_numbered() -> None:
    catalog = Catalog()
    assert catalog.new_query_name() == "query_1"
    catalog.add_query(query("query_1"))
    catalog.add_query(query("query_2"))
    assert catalog.new_query_name() == "query_3"
    catalog.drop_query(Name("query_1"))
    assert catalog.new_query_name() == "query_1"


def test_a_query_is_found_or_refused() -> None:
    catalog = Catalog()
    catalog.add_query(query("query_1"))
    assert catalog.query(Name("Query_1")).name == "query_1"
    with pytest.raises(ms.CatalogError, match='query "query_7" does not exist'):
        catalog.query(Name("query_7"))
    with pytest.raises(ms.CatalogError, match='query "query_1" exists already'):
        catalog.add_query(query("query_1"))
