"""Recipes of docs/devices.md: a section's endpoint, statement and rows."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.docs.markdown import ROOT, blocks

_DEVICES = ROOT / "docs" / "devices.md"
RUN_BY = {
    "shelly_plug": "test_http_recipes::test_a_shelly_plug",
    "outlet": "test_http_recipes::test_a_power_strip_with_a_web_page",
    "lora": "test_http_recipes::test_a_webhook_of_the_things_stack",
    "meter": "test_record_recipes::test_a_modbus_meter",
    "counter": "test_sql_recipe::test_meter_readings_in_a_database",
    "heating": "test_file_recipe::test_a_data_logger_that_writes_csv_files",
    "k7_file": "test_file_recipe::test_a_k7_trace_that_grows",
    "press": "test_record_recipes::test_an_opc_ua_machine",
    "greenhouse": "test_record_recipes::test_a_coap_sensor",
    "outlets": "test_record_recipes::test_an_snmp_pdu",
    "room": "test_record_recipes::test_a_bacnet_thermostat",
    "water": "test_local_recipes::test_a_recorded_water_meter",
    "reserved": "test_local_recipes::test_reservations_of_rooms",
    "rack": "test_local_recipes::test_a_machine_by_another_name",
    "warm": "test_local_recipes::test_thermometers_by_another_name",
}
"""The test of each source of the page whose device does not publish by MQTT."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a section says.

    Attributes:
        endpoint: Settings of its one endpoint, without "connector".
        statement: CREATE SOURCE.
        rows: As CSV, the names of the columns first.
    """

    endpoint: dict[str, object]
    statement: str
    rows: str


def recipe(heading: str) -> Recipe:
    """Return the recipe under a heading."""
    text = _DEVICES.read_text(encoding="utf-8")
    _, found, section = text.partition(f"### {heading}\n")
    assert found, f"{_DEVICES} has no section {heading}"
    section = re.split(r"^#{1,3} ", section, maxsplit=1, flags=re.MULTILINE)[0]
    assert len(section.splitlines()) <= 40, "a recipe has at most 40 lines"
    (endpoint,) = json.loads(_block(section, "json")).values()
    del endpoint["connector"]
    return Recipe(endpoint, _block(section, "sql"), _block(section, "text"))


def statement(name: str) -> str:
    """Return the statement of the page that creates a source."""
    (found,) = (
        b.text for b in blocks(_DEVICES, "sql") if b.text.startswith(f"CREATE SOURCE {name} ")
    )
    return found


def as_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as recipes show them."""
    given = [{name: _shown(value) for name, value in row.items()} for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, given[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(given)
    return text.getvalue()


def _shown(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _block(section: str, language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"{len(found)} blocks of {language}"
    return str(found[0])
