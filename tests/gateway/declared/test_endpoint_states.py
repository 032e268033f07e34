"""A gateway tells which endpoints can be listened to, and which can be browsed."""

from pathlib import Path

import pytest

from gateway.connectors import registry
from gateway.connectors.browsing import Browser
from gateway.connectors.registry import BUILT_IN, BuiltIn, ConnectorRegistry
from gateway.declared.endpoint_states import endpoint_states
from gateway.testing import settings_for
from gateway.testing_connectors import TellingConnector
from streamsql.catalog.connectors import BROWSED_CONNECTORS, hands_over_records
from streamsql.wire.site_messages import EndpointState


class Dials(TellingConnector):
    """A plug-in that reads addresses and can list them."""

    hands_over_records = True
    browse_options = TellingConnector.source_options

    async def browse(self, context: object) -> None:
        """Offer nothing."""


@pytest.mark.parametrize("kind", BUILT_IN)
def test_what_is_told_of_ours_is_so(kind: str) -> None:
    connector = ConnectorRegistry().factory(kind)()
    assert isinstance(connector, Browser) == (kind in BROWSED_CONNECTORS)


def test_plug_ins_say_it_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "dials", BuiltIn(__name__, "Dials"))
    monkeypatch.setitem(
        registry.BUILT_IN, "telling", BuiltIn("gateway.testing_connectors", "TellingConnector")
    )
    kinds = ("mqtt", "modbus", "sql", "dials", "telling", "missing")
    endpoints = {f"my_{kind}": {"connector": kind} for kind in kinds}
    settings = settings_for(tmp_path / "gw", sources=(), endpoints=endpoints)
    assert endpoint_states(settings) == (
        EndpointState("my_mqtt", "mqtt", listens=True),
        EndpointState("my_modbus", "modbus"),
        EndpointState("my_sql", "sql", browses=True),
        EndpointState("my_dials", "dials", browses=True),
        EndpointState("my_telling", "telling", listens=True),
        EndpointState("my_missing", "missing"),
    )


@pytest.mark.parametrize("kind", BUILT_IN)
def test_what_lists_reads_addresses(kind: str) -> None:
    assert kind not in BROWSED_CONNECTORS or hands_over_records(kind)
