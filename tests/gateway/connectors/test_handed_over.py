"""The class of a connector says whether FROM holds its addresses."""

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.handed_over import as_handed_over
from gateway.connectors.testing.source_statements import definitions_of
from gateway.testing_connectors import TellingConnector
from streamsql.mapping.mapper import Mapper


class Dials(TellingConnector):
    """Is read by addresses."""

    hands_over_records = True


STATEMENT = "CREATE SOURCE s (low INTEGER FROM 'dial.7') WITH (connector = 'dials'{more})"


def rows_of(connector: type, record: dict[str, object], more: str = "") -> list[object]:
    (definition,) = definitions_of(STATEMENT.format(more=more))
    made = as_handed_over(definition, connector)
    problems: list[str] = []
    source = DeclaredSource(made, Mapper(made), lambda: 0, {}, problems.append)
    return [reading.values["low"] for reading in source.read_record(record)]


def test_addresses_are_taken_as_they_are() -> None:
    assert rows_of(Dials, {"dial.7": 5}) == [5]


def test_without_it_they_are_paths() -> None:
    assert rows_of(TellingConnector, {"dial": {"7": 5}}) == [5]
    assert rows_of(TellingConnector, {"dial.7": 5}) == []


def test_a_format_that_the_statement_names_counts() -> None:
    assert rows_of(TellingConnector, {"dial.7": 5}, ", format = 'fields'") == [5]
