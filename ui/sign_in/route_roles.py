"""The least role that each route needs. A route that is not here is closed to everybody."""

from collections.abc import Mapping
from enum import Enum

from starlette.routing import compile_path

from federated_optimizer.coordinator.contract.principal import Role

VIEWER, ANALYST = Role.VIEWER, Role.ANALYST
OPERATOR, ADMINISTRATOR = Role.OPERATOR, Role.ADMINISTRATOR


class Access(Enum):
    """Routes for which nobody needs to sign in."""

    OPEN = "open"


OPEN = Access.OPEN
Least = Role | Access

ROUTES: Mapping[str, Least] = {
    # To sign in or to join, and what answers without: none of it tells of the federation's data.
    "GET /api/health": OPEN,
    "GET /static/{path:path}": OPEN,
    "GET /sign-in": OPEN,
    "GET /sign-in/provider": OPEN,
    "GET /sign-in/return": OPEN,
    "GET /api/me": OPEN,
    "POST /api/sign-in": OPEN,
    "GET /api/fleet/authority": OPEN,
    "POST /api/fleet/join": OPEN,  # needs a gateway's one-time token
    # One's own account.
    "POST /api/sign-out": VIEWER,
    "GET /account": VIEWER,
    "POST /api/me/password": VIEWER,
    "GET /api/me/tokens": VIEWER,
    "GET /api/grants": VIEWER,  # those that are for the asker
    "GET /api/quotas/{account}": VIEWER,  # of others for administrators
    "POST /api/me/tokens": VIEWER,
    "DELETE /api/me/tokens/{token_id}": VIEWER,
    # Map, displays and alarms.
    "GET /": VIEWER,
    "GET /map/plan.js": VIEWER,
    "GET /api/map/events": VIEWER,
    "GET /api/site.geojson": VIEWER,
    "POST /api/route": VIEWER,
    "POST /api/path": VIEWER,
    "GET /alarms": VIEWER,
    "GET /api/alarms": VIEWER,
    "GET /api/alarms/count": VIEWER,
    "GET /api/alarms/events": VIEWER,
    "GET /api/notices/events": VIEWER,
    "GET /displays": VIEWER,
    "GET /displays/{name}": VIEWER,
    "GET /api/displays": VIEWER,
    "GET /api/displays/{name}": VIEWER,
    "GET /api/displays/events": VIEWER,
    "POST /api/alarms/rows/{number}/acknowledge": ANALYST,
    "POST /api/alarms/{name}/acknowledge": ANALYST,
    # Results; whose inputs may be read is checked with the grants.
    "GET /api/queries": VIEWER,
    "GET /api/queries/{query_id}": VIEWER,
    "GET /api/queries/{query_id}/rows": VIEWER,
    "GET /api/queries/{query_id}/changes": VIEWER,
    "GET /api/changes": VIEWER,
    "GET /api/sites": VIEWER,
    "GET /api/links": VIEWER,
    "GET /openapi.json": VIEWER,
    # Queries.
    "GET /queries": ANALYST,
    "GET /monitor": ANALYST,
    "GET /history": ANALYST,
    "GET /network": ANALYST,
    "GET /data": ANALYST,
    "GET /gateways": ANALYST,
    "POST /api/statements": ANALYST,
    "POST /api/validate": ANALYST,
    "POST /api/complete": ANALYST,
    "DELETE /api/queries/{query_id}": ANALYST,
    "GET /api/queries/{query_id}/explain": ANALYST,
    "GET /api/network": ANALYST,  # of queries that may not be read only the number
    "POST /api/queries/{query_id}/why": ANALYST,
    "POST /api/queries/{query_id}/confidence": ANALYST,
    "POST /api/what-if": ANALYST,
    "GET /api/definitions": ANALYST,
    "GET /api/definitions/{name}": ANALYST,
    "GET /api/sources": ANALYST,
    "GET /api/sinks": ANALYST,
    "GET /api/sinks/{name}": ANALYST,
    "GET /api/sinks/{name}/dead": ANALYST,
    "GET /api/costs": ANALYST,
    "GET /api/sites/{site}/settings": ANALYST,
    "GET /api/lake": ANALYST,
    "GET /api/lake/jobs": ANALYST,
    "GET /api/lake/tables/{table}/sample": ANALYST,
    "GET /api/tables": ANALYST,
    "GET /api/tables/{table}/sample": ANALYST,
    # The federation.
    "GET /sources/new": OPERATOR,
    "GET /api/history/trials": ANALYST,
    "GET /api/history/trials/{trial}": ANALYST,
    "DELETE /api/history/trials/{trial}": ANALYST,
    "POST /api/sources/trials": OPERATOR,
    "GET /api/sources/trials/{trial}": OPERATOR,
    "DELETE /api/sources/trials/{trial}": OPERATOR,
    "POST /api/sources/trials/{trial}/proposals": OPERATOR,
    "POST /api/sources/try": OPERATOR,
    "POST /api/costs": OPERATOR,
    "DELETE /api/costs": OPERATOR,
    "POST /api/costs/hops": OPERATOR,
    "PATCH /api/sites/{site}/settings": OPERATOR,
    "DELETE /api/sites/{site}": OPERATOR,
    "POST /api/sites/{site}/restart": OPERATOR,
    "POST /api/sinks/{name}/retry": OPERATOR,
    "POST /api/sinks/{name}/discard": OPERATOR,
    "POST /api/lake/jobs": OPERATOR,
    "DELETE /api/lake/jobs/{job}": OPERATOR,
    "POST /api/simulate": OPERATOR,
    "POST /api/simulate/past": OPERATOR,
    "GET /api/calibration/tables": OPERATOR,
    "POST /api/calibration/tables": OPERATOR,
    "POST /api/calibration": OPERATOR,
    "POST /api/calibration/heard": OPERATOR,
    "POST /api/calibration/points": OPERATOR,
    "DELETE /api/calibration/points/{point}": OPERATOR,
    "GET /api/network/index": OPERATOR,
    "POST /api/network/index": OPERATOR,
    "GET /metrics": OPERATOR,
    # Enrolment of gateways.
    "GET /api/fleet": OPERATOR,
    "POST /api/fleet": ADMINISTRATOR,
    "POST /api/fleet/{name}/revoke": ADMINISTRATOR,
    "POST /api/fleet/{name}/rotate": ADMINISTRATOR,
    "POST /api/fleet/{name}/rename": ADMINISTRATOR,
    "DELETE /api/fleet/{name}": ADMINISTRATOR,
    # People.
    "GET /people": ADMINISTRATOR,
    "GET /api/accounts": ADMINISTRATOR,
    "POST /api/accounts": ADMINISTRATOR,
    "PATCH /api/accounts/{name}": ADMINISTRATOR,
    "DELETE /api/accounts/{name}": ADMINISTRATOR,
    "GET /api/tokens": ADMINISTRATOR,
    "POST /api/tokens": ADMINISTRATOR,
    "DELETE /api/tokens/{token_id}": ADMINISTRATOR,
}
"""By method and path, as the application declares them; HEAD goes with GET."""


class RouteRoles:
    """The table, looked up by the path of a request.

    Where several entries fit a path, the one counts that asks most: whichever of them the
    application chooses, nobody gets at a route by the name of another.
    """

    def __init__(self, routes: Mapping[str, Least] = ROUTES) -> None:
        self._plain: dict[tuple[str, str], Least] = {}
        self._patterns = []
        for route, least in routes.items():
            method, _, path = route.partition(" ")
            if "{" in path:
                self._patterns.append((method, compile_path(path)[0], least))
            else:
                self._plain[method, path] = least

    def least(self, method: str, path: str) -> Least | None:
        """Return what a request needs; None where it is closed."""
        method = "GET" if method == "HEAD" else method
        if not path.isprintable():
            return None  # a line end after a path fits patterns, but no plain path
        found = [
            least
            for known, pattern, least in self._patterns
            if known == method and pattern.match(path)
        ]
        if (method, path) in self._plain:
            found.append(self._plain[method, path])
        return max(found, key=_demand, default=None)


def _demand(least: Least) -> int:
    return -1 if isinstance(least, Access) else tuple(Role).index(least)
