"""Offers: fragments of running queries whose rows at a base site others may read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamsql.algebra.operators import Plan, RemoteSource
from streamsql.catalog.read_gate import Read
from streamsql.data.schema import Schema
from streamsql.wire.fragments import FragmentBundle


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A place whose rows may be read, or a part of a plan that would have to become one.

    Attributes:
        run: The name of the run that has it.
        fragment: Its id there; empty: the run computes it inside, and nobody can read it yet.
        bundle: Of the run; it says all that the fragment is computed from.
        plan: What it computes, over sources.
        rows: That it has, as counted; None: nobody knows.
        reads: The relations that whoever reads it must be allowed to read.
        tells: The relations that all queries read that the run was made for, as its text tells.
        is_node: True if the run has no query of its own, so that it may be given more columns.
        own: Of a part inside: how many columns, from the first, the run itself needs of it.
        estimated: Returns the rows that it is likely to have; None: nobody estimates them.
        for_partners: True if it is a join of which the run only asks for partners, by a semi join.
    """

    run: str
    fragment: str
    bundle: FragmentBundle
    plan: Plan
    rows: float | None = None
    reads: frozenset[Read] = frozenset()
    tells: frozenset[Read] = frozenset()
    is_node: bool = False
    own: int = 0
    # Most offers are never compared, so most are never estimated: 1.5 ms for a chain of joins.
    estimated: Callable[[], float] | None = None
    for_partners: bool = False

    @property
    def told(self) -> float | None:
        """The rows that it has, as counted or else estimated; None: nobody knows."""
        if self.rows is None and self.estimated is not None:
            return self.estimated()
        return self.rows

    @property
    def is_readable(self) -> bool:
        """True if its rows are at a base site."""
        return bool(self.fragment)

    @property
    def is_delivered(self) -> bool:
        """True if sites deliver its rows to the base, whoever reads them there."""
        return self.is_readable and bool(self.bundle.fragment(self.fragment).consumer)

    def is_at(self, site: str) -> bool:
        """Return whether a site has its rows, all of them."""
        if not self.is_readable:
            return False
        fragment = self.bundle.fragment(self.fragment)
        return (fragment.destinations if fragment.consumer else fragment.sites) == (site,)

    @property
    def name(self) -> str:
        """The name of its leaf: no other offer has it."""
        return leaf_name(self.run, self.fragment)

    @property
    def columns(self) -> Schema:
        """The columns of its rows."""
        return self.plan.schema

    @property
    def leaf(self) -> RemoteSource:
        """The leaf by which plans read it."""
        return RemoteSource(self.name, self.columns)


NO_OFFERS: Mapping[str, Offer] = {}
"""Offers by the name of their leaf: none."""


def leaf_name(run: str, fragment: str) -> str:
    """Return the name of the leaf that reads a fragment of a run."""
    return f"@{run}/{fragment}"


def is_node_name(leaf: str) -> bool:
    """Return whether a leaf's name is that of rows of another run."""
    return leaf.startswith("@")


def is_node_leaf(plan: Plan) -> bool:
    """Return whether a plan is a leaf that reads rows of another run."""
    return isinstance(plan, RemoteSource) and is_node_name(plan.fragment)
