"""Index of what runs compute: which of it answers a plan, and at which price.

Offers are found by the form of what they compute, then by their inputs and predicates, then by
rules for other operators. Of those found the best is equal to what is wanted; else it has the
fewest rows, since every row of it is looked at.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

from federated_optimizer.canonical.exact_cache import encode
from federated_optimizer.sharing.block_shapes import BlockShapes, Candidate, Key
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan, input_forms
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.rule_index import RuleIndex
from federated_optimizer.sharing.rule_table import Rule
from federated_optimizer.sharing.rules import same
from federated_optimizer.sharing.rules.select_project_join import over_aligned
from streamsql.algebra.expressions import conjuncts
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Plan,
    Project,
    Scan,
    Window,
    walk_plan,
)
from streamsql.wire.fragments import FragmentBundle

Name = TypeVar("Name", bound=Hashable)

Allowed = Callable[[Offer], bool]
"""Returns whether a query may read an offer."""

Rows = Callable[[Offer], float]
"""Returns how many rows an offer has."""

MAX_TRIED = 200
"""Offers to which rules of operators are applied for one plan; further ones are not tried."""

MAX_WEAKER = 16
"""Offers of one shape that are compared by their rows; others only if none of these answers."""

MAX_ANSWERED = 32
"""Plans for which the answers by rules are remembered."""


@dataclass(frozen=True, slots=True)
class Found:
    """An answer over an offer.

    Attributes:
        wanted: Over sources.
        offer: That is read.
        plan: Over its leaf, with the schema of what was wanted.
        remaining: Operators above the leaf that look at its rows.
        rows: Of the offer.
    """

    wanted: Plan
    offer: Offer
    plan: Plan
    remaining: int
    rows: float

    @property
    def regroups(self) -> bool:
        """True if it computes groups of its own over the rows: coarser ones."""
        plan = self.plan
        while isinstance(plan, Filter | Project):
            plan = plan.input
        return isinstance(plan, Aggregate | Distinct)

    @property
    def order(self) -> tuple[object, ...]:
        """A key: the best comes first.

        Groups that a run computes inside come before those that would be computed anew.
        """
        cost = self.rows if self.remaining else 0.0
        run, fragment = self.offer.run, self.offer.fragment
        last = (cost, self.rows, len(run), run, fragment)
        return (self.regroups, not self.offer.is_readable, *last)


def rows_told(offer: Offer) -> float:
    """Return the rows that somebody has counted or estimated; very many where nobody has."""
    told = offer.told
    return float("inf") if told is None else told


@dataclass(slots=True)
class _Answers:
    """Answers of rules to one plan, which registration asks for several times.

    Attributes:
        made: By the id of the offer, which is kept so that no other one has it.
        candidates: The offers that rules may answer from, when the index was last changed.
        change: The number of that change.
    """

    made: dict[int, tuple[Offer, tuple[Offer, Plan] | None]] = field(default_factory=dict)
    candidates: tuple[tuple[Offer, tuple[Rule, ...]], ...] = ()
    change: int = -1


class ComputationIndex:
    """The offers of all runs."""

    def __init__(self) -> None:
        self._offers: dict[Key, Offer] = {}
        self._runs: dict[str, list[Key]] = {}
        self._readers: dict[str, dict[str, FragmentBundle]] = {}
        self._forms: dict[str, dict[Key, Offer]] = {}
        self._blocks = BlockShapes()
        self._operators = RuleIndex()
        self._numbers: dict[Key, int] = {}
        self._next_number = 0
        self._answers: dict[bytes, _Answers] = {}
        self._changes = 0
        self._inputs: dict[Scan, dict[Plan, dict[Key, Offer]]] = {}

    def __len__(self) -> int:
        return len(self._offers)

    def add(self, offer: Offer) -> None:
        """Add an offer; one of the same place and form is replaced."""
        form = canonical_plan(offer.plan).form
        key = offer.run, offer.fragment, form
        self._changes += 1
        if key in self._offers:
            self._drop(key)
        self._offers[key] = offer
        self._numbers[key] = self._next_number
        self._next_number += 1
        if not self._runs.get(offer.run):
            for feed in offer.bundle.feeds:
                self._readers.setdefault(feed.run, {})[offer.run] = offer.bundle
        self._runs.setdefault(offer.run, []).append(key)
        self._forms.setdefault(form, {})[key] = offer
        self._blocks.add(key, offer, block_of(offer.plan))
        if _has_rules(offer.plan):
            self._operators.add(key, offer.plan)
        rows = _selected(offer)
        if rows is not None:
            scan = rows.input if isinstance(rows, Window) else rows
            self._inputs.setdefault(scan, {}).setdefault(rows, {})[key] = offer

    def remove(self, run: str) -> None:
        """Remove all offers of a run."""
        for offer in self.of_run(run)[:1]:
            for feed in offer.bundle.feeds:
                readers = self._readers.get(feed.run, {})
                readers.pop(run, None)
                if not readers:
                    self._readers.pop(feed.run, None)
        for key in self._runs.pop(run, []):
            self._drop(key)

    def _drop(self, key: Key) -> None:
        self._changes += 1
        offer = self._offers.pop(key)
        del self._numbers[key]
        if key in self._runs.get(key[0], ()):
            self._runs[key[0]].remove(key)
        _discard(self._forms, key[2], key)
        self._blocks.remove(key)
        if _has_rules(offer.plan):
            self._operators.remove(key)
        rows = _selected(offer)
        if rows is not None:
            scan = rows.input if isinstance(rows, Window) else rows
            _discard(self._inputs[scan], rows, key)
            if not self._inputs[scan]:
                del self._inputs[scan]

    def of_run(self, run: str) -> tuple[Offer, ...]:
        """Return the offers of a run."""
        return tuple(self._offers[key] for key in self._runs.get(run, ()))

    def readers(self, run: str) -> Collection[FragmentBundle]:
        """Return the bundles that read rows of a run, those of runs that offer some alone."""
        return self._readers.get(run, {}).values()

    def of_form(self, form: str) -> tuple[Offer, ...]:
        """Return the offers whose rows have a form; see `canonical_plan`."""
        return tuple(self._forms.get(form, {}).values())

    def rows_of(self, scan: Scan) -> tuple[Plan, ...]:
        """Return the windows over a source, or the source itself, whose rows gateways deliver."""
        return tuple(self._inputs.get(scan, ()))

    def with_inputs(self, plan: Plan) -> Iterator[Offer]:
        """Yield the offers of blocks over the same inputs as a plan, whatever they choose."""
        forms = tuple(sorted(input_forms(block_of(plan))))
        return (offer for offer, _block in self._blocks.all(forms))

    def weaker(self, wanted: Plan, allowed: Allowed, most: int) -> Iterator[Offer]:
        """Yield some offers that have all rows of a block, the likely best, whatever they show."""
        block = block_of(wanted)
        forms = tuple(sorted(input_forms(block)))
        for some in islice(self._blocks.weaker(block, forms, allowed, most), 1):
            yield from (candidate.offer for candidate in some)

    def find(
        self,
        wanted: Plan,
        allowed: Allowed = lambda _offer: True,
        rows: Rows = rows_told,
        *,
        canonical: bool = True,
    ) -> Found | None:
        """Return the best answer to a plan; None: there is none that can be proven right.

        Args:
            wanted: Over sources.
            allowed: Whether an offer may be read.
            rows: Of an offer.
            canonical: Whether predicates that are written otherwise may follow from each other.
        """
        if canonical:
            equal = list(self._equal(wanted, allowed, rows))
            if any(found.offer.is_readable for found in equal):
                return min(equal, key=lambda found: found.order)
        else:
            equal = []
        found = [*equal, *self._weaker(wanted, allowed, rows, canonical=canonical)]
        if canonical:
            found += self._by_rules(wanted, allowed, rows, is_there=any(map(_is_there, found)))
        return min(found, key=lambda each: each.order, default=None)

    def may_have(self, part: Block) -> bool:
        """Return whether there are offers of a block's inputs at all."""
        return self._blocks.has(tuple(sorted(input_forms(part))))

    def _equal(self, wanted: Plan, allowed: Allowed, rows: Rows) -> Iterator[Found]:
        for offer in self._forms.get(canonical_plan(wanted).form, {}).values():
            if allowed(offer):
                plan = same.answer(wanted, offer.plan, offer.leaf)
                if plan is not None:
                    yield Found(wanted, offer, plan, 0, rows(offer))

    def _weaker(
        self, wanted: Plan, allowed: Allowed, rows: Rows, *, canonical: bool
    ) -> Iterator[Found]:
        """Yield the answer over the offer with the fewest rows among those that are no stronger.

        Where nobody has counted them, more predicates leave fewer.
        """
        block = block_of(wanted)
        forms = tuple(sorted(input_forms(block)))
        batches = self._blocks.weaker(block, forms, allowed, MAX_WEAKER)
        for each in (candidate for some in batches for candidate in _in_order(some, rows)):
            leaf = each.offer.leaf
            plan = over_aligned(
                *(each.wanted, each.block, each.available, leaf),
                canonical=canonical,
                is_implied=canonical,
            )
            if plan is not None:
                yield Found(wanted, each.offer, plan, remaining_of(plan), rows(each.offer))
                return

    def _by_rules(
        self, wanted: Plan, allowed: Allowed, rows: Rows, *, is_there: bool
    ) -> Iterator[Found]:
        """Yield answers by rules of operators.

        Of offers that nobody can read there are none where there is a better one: that somebody can
        read, and that computes no groups anew. `is_there` says whether there is one already.
        """
        if not _has_rules(wanted):
            return
        answers = self._answers_to(wanted)
        candidates = ((offer, rules) for offer, rules in answers.candidates if allowed(offer))
        tried = sorted(islice(candidates, MAX_TRIED), key=lambda each: not each[0].is_readable)
        for offer, rules in tried:
            if is_there and not offer.is_readable:
                return
            known = answers.made.get(id(offer))
            if known is None:
                # Only nodes get functions: a query that is alone would gain nothing by them.
                is_inside = offer.is_node and not offer.is_readable
                answered = _by_rule(wanted, offer, rules)
                if answered is None and is_inside:
                    answered = _by_widening(wanted, offer, rules)
                known = answers.made[id(offer)] = offer, answered
            _, found = known
            if found is not None:
                read, plan = found
                made = Found(wanted, read, plan, remaining_of(plan), rows(offer))
                is_there = is_there or _is_there(made)
                yield made

    def lacking_functions(self, wanted: Plan, allowed: Allowed, most: int) -> Iterator[Found]:
        """Yield answers over groups that queries compute inside, with the functions they lack.

        Groups of the same rows by the same keys come first, then the oldest.
        """
        if not _has_rules(wanted):
            return
        form = canonical_plan(wanted).form
        candidates = self._answers_to(wanted).candidates
        inside = [
            (offer, rules)
            for offer, rules in candidates
            if not (offer.is_node or offer.is_readable) and allowed(offer)
        ]
        inside.sort(key=lambda each: canonical_plan(each[0].plan).form != form)
        for offer, rules in inside[:most]:
            found = _by_widening(wanted, offer, rules)
            if found is not None:
                yield Found(wanted, *found, remaining_of(found[1]), rows_told(offer))

    def _answers_to(self, wanted: Plan) -> _Answers:
        name = encode(wanted)
        if name not in self._answers and len(self._answers) >= MAX_ANSWERED:
            self._answers.clear()
        answers = self._answers.setdefault(name, _Answers())
        if answers.change != self._changes:
            answers.candidates = tuple(self._candidates(wanted))
            answers.change = self._changes
        return answers

    def _candidates(self, wanted: Plan) -> Iterator[tuple[Offer, tuple[Rule, ...]]]:
        """Yield the offers that rules may answer a plan from, the oldest first."""
        rules = self._operators.rules_for(wanted)
        for key in sorted(rules, key=self._numbers.__getitem__):
            yield self._offers[key], rules[key]


def _is_there(found: Found) -> bool:
    return found.offer.is_readable and not found.regroups


def _by_rule(wanted: Plan, offer: Offer, rules: Sequence[Rule]) -> tuple[Offer, Plan] | None:
    """Return an answer by the first rule that finds one."""
    leaf = offer.leaf
    for rule in rules:
        plan = rule.answer(wanted, offer.plan, leaf)
        if plan is not None:
            return offer, plan
    return None


def _by_widening(wanted: Plan, offer: Offer, rules: Sequence[Rule]) -> tuple[Offer, Plan] | None:
    """Return an answer over what a run computes inside, with more columns."""
    for rule in rules:
        wide = None if rule.widened is None else rule.widened(wanted, offer.plan)
        if wide is not None:
            return _by_rule(wanted, replace(offer, plan=wide), rules)
    return None


def remaining_of(plan: Plan) -> int:
    """Return how many operators look at the rows of a leaf: a mere choice of columns is none."""
    return sum(
        len(conjuncts(node.predicate)) if isinstance(node, Filter) else 1
        for node in walk_plan(plan)
        if node.inputs and not isinstance(node, Project)
    )


def _in_order(candidates: Sequence[Candidate], rows: Rows) -> Iterator[Candidate]:
    """Yield candidates in the order in which they are to be tried.

    Rows of those that nobody can read are only estimated where no other one answers: of a chain of
    joins that took 40 % of registering.
    """
    for readable in (True, False):
        some = [each for each in candidates if each.offer.is_readable is readable]
        yield from sorted(some, key=lambda each: each.order(rows))


def _has_rules(plan: Plan) -> bool:
    """Return whether rules beyond blocks may apply: a plan is more than a block of sources."""
    return not all(isinstance(child, Scan | Window) for child in block_of(plan).inputs)


def _discard(index: dict[Name, dict[Key, Offer]], name: Name, key: Key) -> None:
    del index[name][key]
    if not index[name]:
        del index[name]


def _selected(offer: Offer) -> Scan | Window | None:
    """Return the rows of one source that gateways select and deliver; None: it is another offer."""
    if not offer.fragment or not offer.bundle.fragment(offer.fragment).consumer:
        return None
    match block_of(offer.plan).inputs:
        case (Scan() | Window() as rows,):
            return rows
        case _:
            return None
