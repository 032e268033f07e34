"""Trees of gateways in a bundle: which fragments merge parts of others on their way to the base."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.statistics.planning_statistics import Parents, Statistics
from federated_optimizer.statistics.wires import DEFAULT_WIRES, Wires
from streamsql.algebra.operators import Aggregate, Distinct, Plan, RemoteSource, TopN, UnionAll
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle


@dataclass(frozen=True, slots=True)
class TreeShare:
    """Parts that some sites send, each of the rows of so many gateways.

    Attributes:
        part: Of each gateway.
        sites: That send.
        merged: Gateways whose rows are in the part of a site.
        all: Gateways of the tree.
        is_near: Whether gateways meet where hops are saved. If not, each gateway's part is counted
            as whole, as if merging saved nothing: no choice rests on a guess of how much it saves.
    """

    part: Plan
    sites: int
    merged: int
    all: int
    is_near: bool = True

    def rows(self, statistics: Statistics) -> Estimate:
        """Return what the sites send together."""
        if not self.is_near:
            every = estimate(self.part, statistics, sites=self.all)
            return every.scaled(self.sites * self.merged / self.all)
        places = max(round(self.all / self.merged), 1)
        all_ = estimate(self.part, statistics, sites=places, merged=self.merged)
        return all_.scaled(self.sites / places)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Fragments of one tree: those that merge with what they read, and where all parts are from."""

    part: Plan
    merging: Mapping[str, tuple[str, ...]]
    fragments: Mapping[str, Fragment]

    def merged(self, name: str) -> int:
        """Return the number of gateways whose rows a fragment has at each of its sites."""
        return 1 + sum(map(self.gateways, self.merging.get(name, ())))

    @property
    def parents(self) -> Parents:
        """To which gateway each sends, by name."""
        found: dict[str, str | None] = {}
        for fragment in self.fragments.values():
            parent = fragment.destinations[0] if fragment.consumer in self.merging else None
            found.update(dict.fromkeys(fragment.sites, parent))
        return dict(sorted(found.items()))

    @property
    def base(self) -> str:
        """Site to which the last parts go."""
        sent = (f for f in self.fragments.values() if f.consumer not in self.merging)
        return next(fragment.destinations[0] for fragment in sent)

    def gateways(self, name: str) -> int:
        """Return the number of gateways whose rows come of a fragment."""
        return len(self.fragments[name].sites) * self.merged(name)


def tree_shares(bundle: FragmentBundle, wires: Wires = DEFAULT_WIRES) -> dict[str, TreeShare]:
    """Return what the fragments of trees send, by id; `wires` say where hops are saved."""
    found: dict[str, TreeShare] = {}
    for tree in _trees(bundle):
        read = {name for names in tree.merging.values() for name in names}
        every = sum(tree.gateways(name) for name in tree.fragments if name not in read)
        is_near = saves_hops(tree.parents, tree.base, wires)
        for name, fragment in tree.fragments.items():
            merged = tree.merged(name)
            found[name] = TreeShare(tree.part, len(fragment.sites), merged, every, is_near)
    return found


def trees_in(bundle: FragmentBundle) -> dict[tuple[str, ...], Parents]:
    """Return by their gateways, sorted, to which gateway each sends; None: to the base."""
    found: dict[tuple[str, ...], Parents] = {}
    for tree in _trees(bundle):
        found[tuple(tree.parents)] = tree.parents
    return found


def saves_hops(parents: Parents, base: str, wires: Wires) -> bool:
    """Whether what gateways send goes fewer hops by a tree than straight to the base."""
    return hops_of(parents, base, wires) < hops_of(dict.fromkeys(parents), base, wires)


def hops_of(parents: Parents, base: str, wires: Wires) -> float:
    """Return the hops from all gateways to where each sends."""
    return sum(wires.between(site, parent or base) for site, parent in parents.items())


def _trees(bundle: FragmentBundle) -> Iterator[_Tree]:
    by_id = {f.id: f for f in bundle.fragments if f.engine == Engine.GATEWAY}
    merging: dict[Plan, dict[str, tuple[str, ...]]] = {}
    for name, fragment in by_id.items():
        match fragment.plan:
            case Aggregate(input=UnionAll(branches=all_)) | Distinct(input=UnionAll(branches=all_)):
                found = _merged(all_, by_id)
            case TopN(input=UnionAll(branches=all_)):
                found = _merged(all_, by_id)
            case _:
                continue
        if found:
            merging.setdefault(all_[0], {})[name] = found
    for part, merges in merging.items():
        members = {n: f for n, f in by_id.items() if n in merges or f.plan == part}
        yield _Tree(part, merges, members)


def _merged(branches: tuple[Plan, ...], gateways: Mapping[str, Fragment]) -> tuple[str, ...]:
    """Return what a fragment reads if it merges its own part with those of other gateways."""
    _, *others = branches
    names = tuple(other.fragment for other in others if isinstance(other, RemoteSource))
    is_tree = names and len(names) == len(others) and all(name in gateways for name in names)
    return names if is_tree else ()
