"""What sites say of sources is told to whoever may read these, and to nobody else."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from federated_optimizer.coordinator.checked.on_behalf import OnBehalf
from federated_optimizer.coordinator.contract.coordinator_model import Freshness, SiteInfo
from federated_optimizer.coordinator.contract.grant_model import Grant, Grantee
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.rights.reading_rights import ReadingRights
from federated_optimizer.coordinator.store.grant_store import StoredRights
from streamsql.catalog.catalog import Catalog
from streamsql.syntax.statement_parsers.grant_statements import GranteeKind
from streamsql.wire.site_messages import (
    ConnectorState,
    DeclaredState,
    SiteRole,
    SiteState,
)
from ui.api.objects import site_object

SECRET = "column pulse: '181 bpm of Mrs Doe' is no number"


def site() -> SiteInfo:
    connectors = (
        ConnectorState("p", "mqtt", ("patients",), errors=1, last_error=SECRET),
        ConnectorState("b", "mqtt", ("patients", "lights"), errors=1, last_error=SECRET),
        ConnectorState("l", "mqtt", ("Lights",), errors=1, last_error="lamp 3 is away"),
    )
    declared = (
        DeclaredState("patients", 1, problem=SECRET, bad=1, last_bad=SECRET),
        DeclaredState("lights", 1, bad=1, last_bad="lamp 3 is away"),
    )
    state = SiteState(True, 1, 1, connectors=connectors, declared=declared)
    return SiteInfo(
        *("gw-1", SiteRole.GATEWAY, True, Freshness.LIVE, 1, 1),
        sources=("patients", "lights"),
        connectors=connectors,
        state=state,
        figures=state,
        differences=("source patients has key mrs_doe",),
    )


def seen_by(principal: Principal) -> dict[str, Any]:
    grant = Grant("lights", Grantee(GranteeKind.EVERYBODY), "boss", 1)
    shared = SimpleNamespace(rights=ReadingRights(Catalog(), StoredRights((grant,))))
    whole = SimpleNamespace(figures=None, sites=lambda: (site(),))
    coordinator = OnBehalf(
        cast("Any", whole), cast("Any", SimpleNamespace(shared=shared)), principal
    )
    (info,) = coordinator.sites()
    assert info.state == info.figures
    return site_object(info)


@pytest.mark.parametrize(
    "principal",
    [
        Principal("vic", Role.VIEWER),
        Principal("ann", Role.ANALYST),
        Principal("bob", Role.OPERATOR, token="t", sources=("lights",)),
    ],
)
def test_problems_of_a_source_that_may_not_be_read_are_not_told(principal: Principal) -> None:
    shown = seen_by(principal)
    assert "Doe" not in str(shown)
    assert "mrs_doe" not in str(shown)
    assert [d["source"] for d in shown["declared"]] == ["lights"]
    assert [c["last_error"] for c in shown["connectors"]] == ["", "", "lamp 3 is away"]
    assert [c["errors"] for c in shown["connectors"]] == [1, 1, 1]


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMINISTRATOR])
def test_operators_are_told_all(role: Role) -> None:
    assert seen_by(Principal("bob", role)) == site_object(site())
