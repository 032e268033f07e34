"""The index of rules loses no answer: trying all rules on all offers finds the same.

More seeds are run by `PANDO_VARIED_SEEDS=1000:1100`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from types import ModuleType
from typing import Any

import pytest

from benchmarks._argus.arriving_rows import thesis_sizes
from benchmarks._argus.live_network import planning_over, source_of
from benchmarks._argus.query_sets import SETS
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing import computation_index
from federated_optimizer.sharing.computation_index import ComputationIndex, Found
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.rule_index import RuleIndex
from federated_optimizer.sharing.rule_table import RULES, Rule
from federated_optimizer.sharing.strategy import Materialize
from federated_optimizer.testing_network import Network
from streamsql.algebra.operators import Plan, RemoteSource
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.errors import UnsupportedError
from streamsql.syntax import Query, parse_statement
from tests.federated_optimizer.laws.shared_query_author import QueryAuthor
from tests.federated_optimizer.laws.test_varied_queries import CATALOG, TOPOLOGY, seeds
from tests.federated_optimizer.sharing.readings_shop import normalized
from tests.federated_optimizer.sharing.rules import (
    test_bounded_views,
    test_coarser_groups,
    test_coarser_windows,
    test_fewer_operands,
    test_preserved_sides,
)
from tests.streamsql.from_text import bound_query


class _Exhaustive(ComputationIndex):
    """Tries every rule on every offer; counts the answers by rules that both ways give."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: Counter[str] = Counter()
        self._tries_all = False

    def find(self, wanted: Plan, *arguments: Any, **named: Any) -> Found | None:
        found = super().find(wanted, *arguments, **named)
        self._tries_all = True
        self._answers.clear()
        exhaustive = super().find(wanted, *arguments, **named)
        self._tries_all = False
        self._answers.clear()
        assert _told(found) == _told(exhaustive)
        return found

    def _candidates(self, wanted: Plan) -> Iterator[tuple[Offer, tuple[Rule, ...]]]:
        if not self._tries_all:
            yield from super()._candidates(wanted)
            return
        stated = dict(super()._candidates(wanted))
        for offer in self._offers.values():
            yield offer, RULES
            for rule in RULES:
                if rule.answer(wanted, offer.plan, offer.leaf) is not None:
                    assert rule in stated.get(offer, ()), (rule, wanted, offer.plan)
                    self.answered[rule.wanted.__module__.rpartition(".")[2]] += 1


def _told(found: Found | None) -> object:
    if found is None:
        return None
    offer = found.offer
    return offer.run, offer.fragment, offer.plan, found.plan, found.remaining, found.rows


@pytest.fixture(autouse=True)
def all_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computation_index, "MAX_TRIED", 1_000_000)


def _register(texts: Iterator[str] | list[str], into: Network, bind: Callable[[str], Any]) -> None:
    for text in texts:
        try:
            into.register(bind(text))
        except UnsupportedError:
            continue


@pytest.mark.parametrize("seed", seeds())
def test_no_answer_to_variations_of_a_query_is_lost(seed: int) -> None:
    random = Random(seed)
    index = _Exhaustive()
    sharing = Sharing(index, materialize=random.choice(list(Materialize)))
    network = Network(Planning(TOPOLOGY), sharing)
    author = QueryAuthor(random)
    varied = (author.varied(random.choice((0.02, 0.1, 0.2))).query() for _ in range(10))
    _register(varied, network, lambda text: bound_query(text, CATALOG))
    assert seed != 17 or index.answered


@pytest.mark.parametrize("name", ["med", "fed-sums", "med-sums"])
def test_no_answer_to_queries_of_the_thesis_is_lost(name: str) -> None:
    chosen = SETS[name]
    stream = chosen.stream(thesis_sizes(chosen.history, 4_000, 10, 0.005), 1)
    catalog = Catalog()
    catalog.define(source_of(stream))
    index = _Exhaustive()
    network = Network(planning_over(stream), Sharing(index))

    def bind(text: str) -> Any:
        statement = parse_statement(text)
        assert isinstance(statement, Query)
        return bind_query(statement, catalog)

    texts = [query.text for query in chosen.queries()]
    # Those in a row are of one kind: rules answer some of them from each other.
    _register([*texts[40:48], *Random(3).sample(texts, 4)], network, bind)
    assert index.answered


_PAIRS = (
    (test_coarser_groups, normalized),
    (test_coarser_windows, normalized),
    (test_fewer_operands, normalized),
    (test_preserved_sides, normalized),
    (test_bounded_views, test_bounded_views.normalized),
)


@pytest.mark.parametrize(("module", "plan_of"), _PAIRS)
def test_every_pair_that_a_rule_answers_is_found(
    module: ModuleType, plan_of: Callable[[str], Plan]
) -> None:
    texts = dict.fromkeys(text for pair in module.ANSWERED for text in pair[:2])
    plans = [plan_of(text) for text in texts]
    index, answers = RuleIndex(), 0
    for number, plan in enumerate(plans):
        index.add((str(number), "", ""), plan)
    for wanted, (number, offered) in product(plans, enumerate(plans)):
        stated = index.rules_for(wanted).get((str(number), "", ""), ())
        leaf = RemoteSource("node", offered.schema)
        for rule in RULES:
            if rule.answer(wanted, offered, leaf) is not None:
                assert rule in stated
                answers += 1
    assert answers >= len(module.ANSWERED)
    for number in range(len(plans)):
        index.remove((str(number), "", ""))
    assert not any(index.rules_for(plan) for plan in plans)
