"""Whose rows of a declared source are missing, and why: from what gateways say of themselves."""

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Freshness, SiteInfo
from federated_optimizer.coordinator.sites.source_serving import (
    PATIENCE,
    AwaitedDefinitions,
    MissingRows,
    awaited_in,
    creation_warnings,
    missing_rows,
)
from streamsql.wire.site_messages import DeclaredState, EndpointState, SiteRole, SiteState
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE climate (device TEXT, t DOUBLE, KEY (device)) "
    "WITH (connector = 'mqtt', endpoint = 'home', topic = 'm/{device}')"
)
VERSION = next(s.version for s in CATALOG.sources if s.name == "climate")
HOME = EndpointState("home", "mqtt")


def gateway(
    *endpoints: EndpointState, told: DeclaredState | None = None, late: bool = False
) -> SiteInfo:
    declared = () if told is None else (told,)
    state = SiteState(online=True, epoch=1, ts=1, endpoints=endpoints, declared=declared)
    late_sources = frozenset({"climate"} if late else ())
    return SiteInfo(
        *("gw-1", SiteRole.GATEWAY, True, Freshness.LIVE, 1, 1),
        state=state,
        figures=state,
        late_sources=late_sources,
    )


@pytest.mark.parametrize(
    ("site", "missing"),
    [
        (gateway(HOME, told=DeclaredState("climate", VERSION)), {}),
        (
            gateway(HOME, told=DeclaredState("climate", VERSION, "no broker")),
            {"gw-1": MissingRows("no broker")},
        ),
        # The next state tells; until then nobody may take the answer for whole.
        (gateway(HOME), {"gw-1": MissingRows("has not reported it yet", is_awaited=True)}),
        (
            gateway(HOME, late=True),
            {
                "gw-1": MissingRows(
                    "has not reported it; it may run an older release", is_awaited=True
                )
            },
        ),
        (
            gateway(HOME, told=DeclaredState("climate", VERSION - 1)),
            {"gw-1": MissingRows(f"serves version {VERSION - 1}, not {VERSION}", is_awaited=True)},
        ),
        (
            gateway(HOME, told=DeclaredState("climate", VERSION - 1), late=True),
            {
                "gw-1": MissingRows(
                    f"serves version {VERSION - 1}, not {VERSION}; it may run an older release",
                    is_awaited=True,
                )
            },
        ),
        (gateway(EndpointState("plant", "mqtt")), None),
    ],
    ids=["served", "problem", "untold", "late", "older", "older and late", "for others"],
)
def test_missing_rows(site: SiteInfo, missing: dict[str, MissingRows] | None) -> None:
    found = missing_rows(CATALOG, [site])["climate"]
    if missing is None:
        assert "gw-1" not in found
    else:
        assert found == missing


def test_a_report_is_late_after_half_a_minute() -> None:
    now = 0
    awaited = AwaitedDefinitions(lambda: now)
    found = awaited_in(CATALOG, missing_rows(CATALOG, [gateway(HOME)]))
    assert list(found) == [("climate", VERSION, "gw-1")]
    awaited.note(found)
    assert (awaited.look(), awaited.late()) == (False, {})
    now = PATIENCE
    assert awaited.look()
    assert awaited.late() == {"gw-1": {"climate"}}
    awaited.note(found)
    assert not awaited.look()
    awaited.note([])
    assert awaited.late() == {}


@pytest.mark.parametrize(
    ("connector", "endpoints", "meant"),
    [
        ("mbus", (), "did you mean connector modbus?"),
        ("mbus", (EndpointState("meters", "mbus"),), None),
        ("mqqt", (HOME,), "did you mean connector mqtt?"),
        ("my_meter", (HOME,), ""),
        ("opcua", (), ""),
    ],
)
def test_a_connector_that_no_gateway_has_may_be_a_slip(
    connector: str, endpoints: tuple[EndpointState, ...], meant: str | None
) -> None:
    text = f"CREATE SOURCE s (a TEXT FROM 'x') WITH (connector = '{connector}')"
    (source,) = (s for s in catalog_of(text).sources if s.name == "s")
    assert source.mapping is not None
    found = creation_warnings(source.mapping, [gateway(*endpoints)])
    if meant is None:
        assert found == ()
    else:
        (warning,) = found
        assert warning.startswith(f"no gateway has an endpoint of connector {connector} yet")
        assert warning.partition("did you")[1:] == meant.partition("did you")[1:]
