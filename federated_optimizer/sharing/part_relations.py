"""Relations that say what a run offers: conditions, groups and inputs of each of its parts.

| relation       | columns                     | meaning                                           |
|----------------|-----------------------------|---------------------------------------------------|
| literals       | literal, term, values, form | conditions; see `canonical.index_rows`            |
| disjunctions   | disjunction, literal        | conditions of which one is TRUE                   |
| predicate sets | part, disjunction           | all of them are TRUE of the rows of a part        |
| group keys     | part, key                   | expressions in canonical form                     |
| inputs         | part, input                 | nearest sources, groups, windows that it joins    |

A part is named `q17/f1` if its rows are at a base site, and else by its form: the name of what it
computes. Columns in terms and keys are `#` and their number in the inputs of the part, which stand
in canonical order. An input is a source or the form of a computation.
"""

from typing import NamedTuple

from federated_optimizer.canonical.canonical_expressions import canonical
from federated_optimizer.canonical.sets.index_rows import IndexRows, index_rows
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from federated_optimizer.sharing.block_shapes import in_canonical_order
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from federated_optimizer.sharing.forms.expression_text import text_of
from federated_optimizer.sharing.forms.group_blocks import group_block_of
from federated_optimizer.sharing.forms.known_times import known_times
from federated_optimizer.sharing.forms.residuals import predicate_set
from federated_optimizer.sharing.run_offers import offers_of
from streamsql.algebra.operators import Plan, Scan, Window
from streamsql.wire.fragments import FragmentBundle


class PartRelations(NamedTuple):
    """Rows of the relations of one run, sorted."""

    conditions: IndexRows
    group_keys: list[tuple[str, str]]
    inputs: list[tuple[str, str]]


def part_relations(bundle: FragmentBundle, logical: Plan) -> PartRelations:
    """Return the relations of a run.

    Args:
        bundle: Of the run, which must be one that any number of queries may read.
        logical: What its result is, over sources.
    """
    sets: dict[str, PredicateSet] = {}
    keys: set[tuple[str, str]] = set()
    inputs: set[tuple[str, str]] = set()
    for offer in offers_of(bundle, logical):
        if offer.for_partners:
            continue  # the run computes no such join
        form = canonical_plan(offer.plan).form
        part = f"{offer.run}/{offer.fragment}" if offer.is_readable else form
        block = in_canonical_order(block_of(offer.plan))
        sets[part] = predicate_set(block.predicates, known_times(block))
        keys.update((part, key) for key in _keys(offer.plan))
        inputs.update((part, name) for name in _inputs(block))
    return PartRelations(index_rows(sets), sorted(keys), sorted(inputs))


def _keys(plan: Plan) -> tuple[str, ...]:
    groups = group_block_of(plan)
    if groups is None:
        return ()
    below = in_canonical_order(groups.below)
    return tuple(text_of(canonical(key), "#{}".format) for key in below.outputs)


def _inputs(block: Block) -> tuple[str, ...]:
    return tuple(_name(plan) for plan in block.inputs)


def _name(plan: Plan) -> str:
    inside = plan.input if isinstance(plan, Window) else plan
    return inside.source.lower() if isinstance(inside, Scan) else canonical_plan(plan).form
