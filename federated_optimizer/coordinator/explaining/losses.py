"""Base rows that WHAT IF deletes: by their values, or because their gateway has them."""

from collections.abc import Sequence

from federated_optimizer.coordinator.explaining.known_base_rows import BaseRows
from federated_optimizer.coordinator.sites.membership import Membership
from streamsql.algebra.operators import SourceKind
from streamsql.algebra.row_explanations import Contents, Leaf, scan_of
from streamsql.binder import BoundLoss, GatewayDeletion
from streamsql.data.types import Row
from streamsql.errors import BindingError
from streamsql.syntax.cursor import nearest


def lost_by_values(contents: Contents, losses: Sequence[BoundLoss]) -> dict[Leaf, list[Row]]:
    """Return the rows of leaves that are meant by their values."""
    return {
        leaf: [row for row in rows if any(x.matches(scan_of(leaf).source, row) for x in losses)]
        for leaf, rows in contents.items()
    }


def lost_rows(base: BaseRows, losses: Sequence[BoundLoss]) -> dict[Leaf, list[Row]]:
    """Return the rows of leaves that are meant, each as often as it would go.

    A row that two gateways have stays while one of them is there.
    """
    lost = lost_by_values(base.contents, losses)
    gateways = {loss.gateway for loss in losses if isinstance(loss, GatewayDeletion)}
    for leaf, by_site in base.origins.items():
        meant = set(lost[leaf])
        for site in gateways & by_site.keys():
            lost[leaf].extend(row for row in by_site[site] if row not in meant)
    return lost


def unknown_owners(base: BaseRows, losses: Sequence[BoundLoss]) -> list[str]:
    """Return a sentence per source whose rows are mixed before anyone sees whose they are."""
    if not any(isinstance(loss, GatewayDeletion) for loss in losses):
        return []
    names = {
        scan_of(leaf).source
        for leaf in base.contents
        if leaf not in base.origins and scan_of(leaf).kind != SourceKind.TABLE
    }
    return [
        f"a base site merges the rows of {name}, so their gateways are unknown here and "
        "all of them stay"
        for name in sorted(names)
    ]


def check_gateways(losses: Sequence[BoundLoss], membership: Membership) -> None:
    """Check that every gateway that would die is one.

    Raises:
        BindingError: It is not known.
    """
    known = membership.with_role("gateway")
    for loss in losses:
        if isinstance(loss, GatewayDeletion) and loss.gateway not in known:
            close = nearest(loss.gateway, known)
            raise BindingError(
                f"there is no gateway {loss.gateway!r:.60}",
                hint=f"did you mean {close}?" if close else f"known: {', '.join(known) or 'none'}",
                code="unknown_relation",
            )
