"""Texts of nodes: what a query of somebody else wants is told to those alone who may read it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.network_dot import network_dot
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.explaining.seen_texts import NOT_SHOWN
from federated_optimizer.sharing.strategy import Materialize
from streamsql.errors import FederationError
from streamsql.syntax import ExplainFormat

ANN = Principal("ann", Role.ANALYST)
BEN = Principal("ben", Role.ANALYST)
OLA = Principal("ola", Role.OPERATOR)
ADA = Principal("ada", Role.ADMINISTRATOR)
LIMITED = Principal("ola", Role.OPERATOR, sources=("seatsensor", "roomsensor"))
PEOPLE = {each.name: Account(each.name, each.role) for each in (ANN, BEN, OLA, ADA)}
GRANTS = (
    "GRANT SELECT ON SOURCE SeatSensor, RoomSensor TO ROLE analyst",
    "GRANT SELECT ON TABLE Machines TO USER ben",
)
SEATS = "SELECT s.mid, r.status FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid"
MINE = f"{SEATS} WHERE s.weightLevel > 9.5 AND r.status = 'open'"
OTHER = f"{SEATS} WHERE s.weightLevel > 11.5 AND r.status = 'open'"
BENS = (
    "SELECT s.mid, m.rid FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid "
    "JOIN Machines m ON m.mid = s.mid WHERE s.weightLevel > 7.25 AND r.status <> 'secret'"
)
EXPLAINED = f"EXPLAIN (TYPE FEDERATED, FORMAT TEXT) {OTHER}"
TOLD = ("7.25", "secret")
"""Constants that only the query of ben has."""


async def run(whole: Any, who: Principal, text: str, **more: Any) -> Any:
    (result,) = await whole.on_behalf(who).execute(text, **more)
    return result


async def opened(federation: Any, **changes: Any) -> Any:
    whole = await federation.standard(gateways=1, **{"materialize": Materialize.EAGER, **changes})
    whole.follow_accounts(PEOPLE.get)
    for grant in GRANTS:
        await run(whole, ADA, grant)
    return whole


def living(harness: Any, scenario: Callable[[Any], Any], **changes: Any) -> None:
    async def whole(federation: Any) -> None:
        await scenario(await opened(federation, **changes))

    harness.run(whole)


async def texts(whole: Any, who: Principal, query: str) -> dict[str, str]:
    """Return all that tells somebody of a query and of the network below it, by its way."""
    api = whole.on_behalf(who)
    found = {
        "network": repr(api.network()),
        "graph": network_dot(api.network()),
        "query": repr(api.query(query)),
        "queries": repr(api.queries()),
        "plan": repr(api.explain(query)),
    }
    for form in (ExplainFormat.TEXT, ExplainFormat.JSON, ExplainFormat.DOT):
        found[f"plan {form}"] = repr(await api.explained(query, form))
    asked = [f"EXPLAIN (FORMAT {form}) {OTHER}" for form in ("TEXT", "JSON", "DOT")]
    asked += [
        f"EXPLAIN (TYPE FEDERATED, FORMAT {form}) {OTHER}" for form in ("TEXT", "JSON", "DOT")
    ]
    asked += [f"EXPLAIN ANALYZE {MINE}", f"EXPLAIN (TYPE ALTERNATIVES) {OTHER}", "SHOW NETWORK"]
    for text in (*asked, "SHOW QUERIES"):
        found[text] = repr(await run(whole, who, text))
    return found


def telling(found: dict[str, str]) -> set[str]:
    """Return the ways by which somebody learns of a constant of ben."""
    return {way for way, text in found.items() if any(told in text for told in TOLD)}


def computed(whole: Any, who: Principal) -> Iterator[tuple[str, str]]:
    return ((node.name, node.computes) for node in whole.on_behalf(who).network().nodes)


def test_a_node_that_tells_of_a_query_is_named_and_not_described(harness: Any) -> None:
    async def scenario(whole: Any) -> None:
        await run(whole, BEN, BENS, name="bens")
        query = (await run(whole, ANN, MINE, name="mine")).query.id
        assert [*computed(whole, ANN)] == [
            ("1/f1", NOT_SHOWN),
            (
                query.removeprefix("q"),
                "SELECT mid, status FROM node 1/f1 WHERE (weightlevel > 9.5) AND (status = 'open')",
            ),
        ]
        assert telling(await texts(whole, ANN, query)) == set()
        assert telling(await texts(whole, LIMITED, query)) == set()
        for who in (BEN, OLA, ADA):
            ways = telling(await texts(whole, who, query))
            assert {"network", "SHOW NETWORK", "plan", EXPLAINED} <= ways
            assert {f"plan {form}" for form in ExplainFormat} <= ways
        said = whole.on_behalf(ANN).explain(query)
        assert f"RemoteSource[{NOT_SHOWN}]" in said.text
        assert "Fragment f1 reads node 1/f1, shared with 1 query; adds 2 filters" in said.text
        (fed,) = (each for each in said.data["fragments"] if each["id"] == "f1")
        assert (fed["columns"], fed["method"]) == ([], f"gathers {NOT_SHOWN}")

    living(harness, scenario)


def test_a_node_tells_of_queries_that_have_ended(harness: Any) -> None:
    async def scenario(whole: Any) -> None:
        bens = (await run(whole, BEN, BENS)).query.id
        query = (await run(whole, ANN, MINE)).query.id
        await whole.stop(bens)
        assert ("1/f1", NOT_SHOWN) in computed(whole, ANN)
        assert telling(await texts(whole, ANN, query)) == set()
        assert "secret" in dict(computed(whole, BEN))["1/f1"]
        # With the right to read what ben read the text is shown.
        await run(whole, ADA, "GRANT SELECT ON TABLE Machines TO USER ann")
        assert "secret" in dict(computed(whole, ANN))["1/f1"]
        await run(whole, ADA, "REVOKE SELECT ON TABLE Machines FROM USER ann")
        assert telling(await texts(whole, ANN, query)) == set()

    living(harness, scenario)


def test_it_is_known_after_a_restart_for_whom_a_node_was_made(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        former = await opened(federation)
        bens = (await run(former, BEN, BENS)).query.id
        query = (await run(former, ANN, MINE)).query.id
        await former.stop(bens)
        await former.close()
        whole = await federation.coordinator(materialize=Materialize.EAGER)
        whole.follow_accounts(PEOPLE.get)
        await harness.until(lambda: whole.query(query).settled, "it runs again")
        assert ("1/f1", NOT_SHOWN) in computed(whole, ANN)
        assert telling(await texts(whole, ANN, query)) == set()
        assert "secret" in dict(computed(whole, BEN))["1/f1"]

    harness.run(scenario)


PAIRS = (
    "(SELECT mid, rid FROM SeatSensor WHERE weightLevel > 5) s, "
    "(SELECT MAX(status) AS top FROM RoomSensor) r"
)
WITH_MACHINES = f"""
    SELECT s.mid, s.rid, m.rid AS other FROM {PAIRS} JOIN Machines m ON m.mid = s.mid
    WHERE s.mid <> r.top
"""


WIDER = f"""
    EXPLAIN (TYPE FEDERATED) SELECT s.mid, s.weightLevel FROM
    {PAIRS.replace("mid, rid", "mid, weightLevel")} WHERE s.mid < r.top
"""


def test_a_node_that_is_given_a_column_for_somebody_else_tells_no_more(harness: Any) -> None:
    async def scenario(whole: Any) -> None:
        await run(whole, ANN, f"SELECT s.mid FROM {PAIRS}")
        mine = f"SELECT s.mid FROM {PAIRS} WHERE s.mid <> r.top"
        query = (await run(whole, ANN, mine)).query.id
        before = dict(computed(whole, ANN))
        assert NOT_SHOWN not in before.values()
        await run(whole, BEN, WITH_MACHINES)
        after = dict(computed(whole, ANN))
        wider = {name: text for name, text in computed(whole, ADA) if before.get(name) != text}
        assert "SELECT mid, max_1, rid" in wider["2"], "the node is given the column"
        hidden = {name for name, text in after.items() if text == NOT_SHOWN}
        assert hidden == {"2", "2/f1"} == wider.keys() & after.keys()
        for asked in (f"EXPLAIN ANALYZE {mine}", WIDER):
            said = (await run(whole, ANN, asked)).text
            assert NOT_SHOWN in said
            assert "rid" not in said.partition(NOT_SHOWN)[0]
        reader, node = whole._queries.find(query), whole._queries.nodes.of("q2")
        await harness.until(
            lambda: reader.bundle.feeds[0].version == node.bundle.version, "it reads the wider node"
        )
        for who in (ANN, BEN):
            shown = whole.on_behalf(who).explain(query).data["fragments"]
            assert ("rid" in repr(shown), NOT_SHOWN in repr(shown)) == (who is BEN, who is ANN)

    living(harness, scenario, materialize=Materialize.WANTED_TWICE)


def test_a_node_that_an_operator_causes_tells_of_the_query_whose_part_it_was(harness: Any) -> None:
    async def scenario(whole: Any) -> None:
        await run(whole, BEN, WITH_MACHINES)
        await run(whole, OLA, f"SELECT s.mid FROM {PAIRS} WHERE s.mid > r.top")
        query = (await run(whole, ANN, f"SELECT s.mid FROM {PAIRS} WHERE s.mid < r.top")).query.id
        (feed,) = whole._queries.find(query).bundle.feeds
        node = whole._queries.nodes.of(feed.run)
        assert node is not None, "it reads a node that was made for others"
        assert "machines" not in {read.relation for read in node.reads}
        assert "machines" in {read.relation for read in node.tells}
        assert dict(computed(whole, ANN))[feed.run.removeprefix("q")] == NOT_SHOWN

    living(harness, scenario, materialize=Materialize.WANTED_TWICE)


def test_whoever_may_read_a_query_need_not_see_what_it_reads(harness: Any) -> None:
    async def scenario(whole: Any) -> None:
        await run(
            whole,
            OLA,
            BENS.replace("Machines m ON m.mid", "MachineSoftware m ON m.mid").replace(
                "m.rid", "m.software"
            ),
        )
        query = (await run(whole, OLA, MINE)).query.id
        assert telling(await texts(whole, ANN, query)) == set()
        assert telling(await texts(whole, OLA, query))

    living(harness, scenario)


@pytest.mark.parametrize(
    "text", ["SELECT computes FROM sys_nodes", "SELECT detail FROM sys_decisions"]
)
def test_tables_of_the_system_are_for_operators(harness: Any, text: str) -> None:
    async def scenario(whole: Any) -> None:
        for who in (ANN, LIMITED):
            with pytest.raises(FederationError) as found:
                await run(whole, who, text)
            assert found.value.code == "not_allowed"
        await run(whole, OLA, text)

    living(harness, scenario)
