"""Connectors are found by kind, imported when used, and refused with what to do."""

import sys
from importlib.metadata import EntryPoint

import msgspec
import pytest

from gateway.connectors import registry
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.registry import (
    BUILT_IN,
    BuiltIn,
    ConnectorMissingError,
    ConnectorRegistry,
)
from streamsql.catalog.connectors import SOURCE_OPTIONS


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """None."""


class Plain:
    """A connector that does nothing."""

    kind = "plain"
    endpoint_options = NoOptions
    source_options = NoOptions

    async def run(self, context: ConnectorContext) -> None:
        """Do nothing."""


class Half:
    """No connector: it has no options."""

    async def run(self, context: ConnectorContext) -> None:
        """Do nothing."""


HERE = {"plain": BuiltIn(__name__, "Plain"), "half": BuiltIn(__name__, "Half")}


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Plain.__module__])


def install(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [e for e in entries if e.group == group]
    )


def entry(kind: str, value: str) -> EntryPoint:
    return EntryPoint(kind, value, registry.GROUP)


def test_a_connector_is_made_by_its_kind() -> None:
    assert isinstance(ConnectorRegistry(built_in=HERE).factory("plain")(), Plain)


def test_one_of_another_package_is_found_by_its_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, entry("theirs", f"{__name__}:Plain"))
    found = ConnectorRegistry(built_in={})
    assert found.kinds() == ("theirs",)
    assert isinstance(found.factory("theirs")(), Plain)


def test_our_own_is_not_replaced_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, entry("plain", "nowhere:Nothing"))
    assert isinstance(ConnectorRegistry(built_in=HERE).factory("plain")(), Plain)


def test_a_kind_that_settings_do_not_allow_is_refused() -> None:
    allowed = ConnectorRegistry(["other"], HERE)
    assert allowed.kinds() == ()
    with pytest.raises(ConnectorMissingError, match="'plain' is not allowed") as caught:
        allowed.factory("plain")
    assert "`connectors` in the gateway's settings" in caught.value.hint


def test_an_unknown_kind_is_refused_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    with pytest.raises(ConnectorMissingError, match="'zigbee' is not installed") as caught:
        ConnectorRegistry(built_in=HERE).factory("zigbee")
    assert "installed: half, plain" in caught.value.hint


def test_a_missing_library_is_named_with_the_extra_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(_module: str) -> object:
        raise ModuleNotFoundError("No module named 'pymodbus'", name="pymodbus")

    monkeypatch.setattr(registry, "import_module", missing)
    built_in = {"modbus": BuiltIn("gateway.connectors.modbus", "Modbus", extra="modbus")}
    with pytest.raises(ConnectorMissingError, match="needs the library pymodbus") as caught:
        ConnectorRegistry(built_in=built_in).factory("modbus")
    assert caught.value.hint == "pip install 'pando[modbus]', and restart the gateway"


def test_a_defect_of_ours_is_not_taken_for_a_missing_library() -> None:
    built_in = {"mine": BuiltIn("gateway.connectors.never_written", "X", extra="mine")}
    with pytest.raises(ModuleNotFoundError):
        ConnectorRegistry(built_in=built_in).factory("mine")


def test_what_others_wrote_cannot_end_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, entry("broken", "json:nothing_of_that_name"))
    with pytest.raises(ConnectorMissingError, match=r"broken .*AttributeError"):
        ConnectorRegistry(built_in={}).factory("broken")


def test_what_is_no_connector_is_refused() -> None:
    with pytest.raises(
        ConnectorMissingError, match=r"half: endpoint_options is no msgspec\.Struct"
    ):
        ConnectorRegistry(built_in=HERE).factory("half")


@pytest.mark.parametrize("kind", BUILT_IN)
def test_statements_may_give_the_options_that_a_connector_reads(kind: str) -> None:
    fields = msgspec.structs.fields(ConnectorRegistry().factory(kind)().source_options)
    assert SOURCE_OPTIONS[kind] == tuple(field.encode_name for field in fields)
