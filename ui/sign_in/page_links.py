"""Links to pages in the header: those that who asks may open."""

from fastapi import Request

from federated_optimizer.coordinator.contract.principal import LOCAL, Principal, Role
from ui.pages.page_routes import templates
from ui.sign_in.route_roles import RouteRoles

_ROLES = RouteRoles()


def may_open(request: Request, page: str) -> bool:
    """Whether who asks may open a page."""
    if page == "/people" and request.app.state.people is None:
        return False
    principal: Principal | None = getattr(request.state, "principal", LOCAL)
    least = _ROLES.least("GET", page)
    return principal is not None and isinstance(least, Role) and principal.role.may_act_as(least)


def offer_links() -> None:
    """Let templates ask which pages may be opened."""
    templates.env.globals["may_open"] = may_open
