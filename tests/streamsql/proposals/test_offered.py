"""What a device offers becomes statements that read it."""

from gateway.connectors.testing.source_statements import definitions_of
from streamsql.data.types import DataType
from streamsql.mapping.mapper import Mapper
from streamsql.mapping.offers import OfferedRecord, OfferedValue
from streamsql.proposals.offered import MAX_COLUMNS, propose_offered
from streamsql.proposals.proposing import MAX_PROPOSALS, Asked

TABLE = OfferedRecord(
    "pdu.outlets",
    (
        OfferedValue("row", "@index", DataType.TEXT, sample="1"),
        OfferedValue("Power (W)", "1.3.6.1.4.1.9.2", DataType.INTEGER, "W", 40),
        OfferedValue("Power (W)", "1.3.6.1.4.1.9.3", DataType.INTEGER, "furlong", 2),
        OfferedValue("at", "at", DataType.TIMESTAMP, sample="2026-06-01T12:00:00+00:00"),
        OfferedValue("odd", "1.3.6.1.4.1.9.4", None, sample="21.5"),
    ),
    {"interval": "5 s"},
    key=("row",),
)


def test_a_record_is_a_source_with_a_column_for_each_value() -> None:
    (found,) = propose_offered([TABLE], Asked("snmp", "rack"), ["pdu_outlets"])
    assert found.text == (
        "CREATE SOURCE pdu_outlets_2 (\n"
        "  row TEXT FROM '@index',\n"
        "  power_w INTEGER FROM '1.3.6.1.4.1.9.2' UNIT 'W',\n"
        "  power_w_2 INTEGER FROM '1.3.6.1.4.1.9.3',\n"
        "  at TIMESTAMP,\n"
        "  odd DOUBLE FROM '1.3.6.1.4.1.9.4',\n"
        "  KEY (row)\n"
        ") WITH (connector = 'snmp', endpoint = 'rack', interval = '5 s')"
    )
    (definition,) = definitions_of(found.text)
    values = {value.address: value.sample for value in TABLE.values}
    mapped = Mapper(definition).map_record(values, {"index": "1"}, 0)
    assert mapped.problems == []
    assert list(mapped.rows[0].values()) == ["1", 40, 2, 1_780_315_200_000_000, 21.5]


def test_only_what_is_chosen_becomes_columns_and_the_key_stays() -> None:
    other = OfferedRecord("other", (OfferedValue("a", "a"),))
    chosen = {"pdu.outlets": ["1.3.6.1.4.1.9.3"], "other": []}
    (found,) = propose_offered([TABLE, other], Asked("snmp", "rack"), (), chosen)
    assert found.schema.names == ("row", "power_w")


def test_numbers_are_bounded() -> None:
    wide = OfferedRecord("wide", tuple(OfferedValue(f"v{n}", f"{n}") for n in range(150)))
    found = propose_offered([wide] * 50, Asked("opcua", "press"))
    assert len(found) == MAX_PROPOSALS
    assert all(len(proposal.columns) == MAX_COLUMNS for proposal in found)
    assert len({proposal.name for proposal in found}) == MAX_PROPOSALS
