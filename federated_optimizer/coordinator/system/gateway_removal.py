"""Removing a gateway that will not come back: nobody plans with it, waits for it, or lists it."""

from federated_optimizer.coordinator.queries.deployment import Deployment
from federated_optimizer.coordinator.sites.membership import Membership
from federated_optimizer.coordinator.sites.published_links import LinkTable
from streamsql.errors import BindingError


def remove_gateway(
    site: str, membership: Membership, links: LinkTable, deployment: Deployment
) -> None:
    """Empty what the broker retains of a gateway; everybody hears of it, we too.

    Its place in plans goes (they are made again without it), and base sites forget how far its
    readings had come. If it ever starts again, it is a new gateway.

    Raises:
        KeyError: There is no such site.
        BindingError: It is no gateway, or it is there.
    """
    role = membership.role(site)
    if not role:
        raise KeyError(site)
    if role != "gateway":
        raise BindingError(
            f"{site} is a {role} site, not a gateway", hint="only gateways can be removed"
        )
    if membership.is_online(site):
        raise BindingError(
            f"gateway {site} is online",
            hint="stop it first: a running gateway announces itself again",
        )
    deployment.remove_gateway(site, links.owned_by(site))
