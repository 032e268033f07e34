"""Networks of groups and set operators: every query has its own rows, whatever others compute."""

from collections.abc import Iterator
from random import Random

import pytest

from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_bundles import Readings
from federated_optimizer.testing_network import Network, answers
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from tests import user_aggregates
from tests.federated_optimizer.sharing.readings_shop import CATALOG, NOW, ROWS, TOPOLOGY
from tests.federated_optimizer.sharing.rules.test_coarser_groups import query
from tests.streamsql.from_text import bound_query

OPERANDS = ("SELECT a, b FROM r", "SELECT a, b FROM q", "SELECT b, a FROM r WHERE a > 1")
OPERATORS = ("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")


def readings() -> Readings:
    whole, one, other = Database(), Database(), Database()
    for name, rows in ROWS.items():
        events = [SourceEvent(row, NOW) for row in rows]
        whole.append(name, events)
        one.append(name, events[::2])
        other.append(name, events[1::2])
    return Readings(whole, {"gw-1": one, "gw-2": other})


READINGS = readings()


@pytest.fixture(autouse=True)
def _with_aggregates_of_users() -> Iterator[None]:
    with user_aggregates.installed():
        yield


def text_of(choose: Random) -> str:
    if choose.random() < 0.3:
        parts = [choose.choice(OPERANDS)]
        for _ in range(choose.randint(1, 2)):
            parts += [choose.choice(OPERATORS), choose.choice(OPERANDS)]
        return " ".join(parts)
    is_fine = choose.random() < 0.4
    keys = choose.choice((2, 3)) if is_fine else choose.choice((0, 1, 1, 2))
    calls = choose.randint(3, 6) if is_fine else choose.randint(1, 2)
    return query(choose, keys, calls, is_bare=is_fine)


@pytest.mark.parametrize("materialize", list(Materialize))
@pytest.mark.parametrize("seed", [1, 2])
def test_queries_of_a_network_have_their_own_rows(seed: int, materialize: Materialize) -> None:
    choose = Random(seed)
    network = Network(Planning(TOPOLOGY), Sharing(ComputationIndex(), Strategy.ALL, materialize))
    shared = 0
    for _ in range(30):
        if network.reads and choose.random() < 0.2:
            network.deregister(choose.choice(sorted(network.reads)))
        else:
            change = network.register(bound_query(text_of(choose), CATALOG))
            shared += change.registration is not None and bool(change.registration.used)
        for name, rows in answers(network, READINGS, NOW).items():
            run = network.runs[network.reads[name]]
            assert rows == evaluate(run.bound.plan, READINGS.whole, NOW), name
    assert shared > 5
