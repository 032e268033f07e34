"""A filter that follows from another one keeps rows at their gateways."""

import inspect

import pytest

from federated_optimizer import normalize, planning
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules import LOGICAL_RULES
from stream_engine.simulation.network import Network
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE seat (mid TEXT, weight INTEGER, KEY (mid))",
    "CREATE SOURCE meter (mid TEXT, watts INTEGER, KEY (mid))",
)
GATEWAYS = ("g1", "g2", "g3")
TOPOLOGY = Topology(dict.fromkeys(GATEWAYS, frozenset({"seat", "meter"})))
ONE_ROOM = "SELECT s.mid, watts FROM seat s JOIN meter m ON m.mid = s.mid WHERE s.mid LIKE 'm-40%'"


def sent(bundle: FragmentBundle) -> tuple[int, Delta]:
    """Return the bytes that gateways send to the base, of 100 machines, and the result."""
    net = Network((*GATEWAYS, "base"))
    scans = [definition.scan() for definition in CATALOG.sources]
    for scan in scans:
        for gateway in GATEWAYS:
            net.declare(gateway, scan)
    net.install(bundle)
    for moment in range(3):
        for number in range(100):
            mid = f"m-{number % 5}{number % 4}{number:02}"
            for name, owner in (("seat", number), ("meter", number + 1)):
                event = SourceEvent((mid, number * (moment + 1) % 90), moment)
                net.ingest(GATEWAYS[owner % 3], name, [event])
        net.settle()
    to_base = sum(size for (_, to), size in net.traffic.bytes.items() if to == "base")
    return to_base, net.result("q")


def test_what_follows_for_the_other_source_saves_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = bound_query(ONE_ROOM, CATALOG).plan
    derived = place(normalize(bound, TOPOLOGY), TOPOLOGY, query="q")
    others = tuple(rule for rule in LOGICAL_RULES if rule.name != "transitive_predicates")
    monkeypatch.setattr("federated_optimizer.planning.LOGICAL_RULES", others)
    normalized, _ = inspect.unwrap(planning._normalized)((bound, TOPOLOGY))  # not as remembered
    written = place(normalized, TOPOLOGY, query="q")
    with_rule, answer = sent(derived)
    without, same = sent(written)
    assert answer == same
    assert len(answer) == 5
    assert with_rule * 3 < without, (with_rule, without)
