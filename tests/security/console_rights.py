"""Who may use which route of the console: stated here by hand, not taken from `ui.sign_in`.

A route that is not stated here fails the suite.
"""

from federated_optimizer.coordinator.contract.principal import Role

NOBODY = ""
"""The route answers who has not signed in."""

_BY_ROLE = {
    NOBODY: """
        GET /api/health
        GET /static/{path:path}
        GET /sign-in
        GET /sign-in/provider
        GET /sign-in/return
        GET /api/me
        POST /api/sign-in
        GET /api/fleet/authority
        POST /api/fleet/join
    """,
    Role.VIEWER: """
        POST /api/sign-out
        GET /account
        POST /api/me/password
        GET /api/me/tokens
        POST /api/me/tokens
        DELETE /api/me/tokens/{token_id}
        GET /
        GET /map/plan.js
        GET /api/map/events
        GET /api/site.geojson
        POST /api/route
        POST /api/path
        GET /alarms
        GET /api/alarms
        GET /api/alarms/count
        GET /api/alarms/events
        GET /api/notices/events
        GET /displays
        GET /displays/{name}
        GET /api/displays
        GET /api/displays/{name}
        GET /api/displays/events
        GET /api/queries
        GET /api/queries/{query_id}
        GET /api/queries/{query_id}/rows
        GET /api/queries/{query_id}/changes
        GET /api/changes
        GET /api/sites
        GET /api/links
        GET /api/grants
        GET /api/quotas/{account}
        GET /openapi.json
    """,
    Role.ANALYST: """
        POST /api/alarms/rows/{number}/acknowledge
        POST /api/alarms/{name}/acknowledge
        GET /queries
        GET /monitor
        GET /history
        GET /network
        GET /data
        GET /gateways
        POST /api/statements
        POST /api/validate
        POST /api/complete
        DELETE /api/queries/{query_id}
        GET /api/queries/{query_id}/explain
        GET /api/network
        POST /api/queries/{query_id}/why
        POST /api/queries/{query_id}/confidence
        POST /api/what-if
        GET /api/definitions
        GET /api/definitions/{name}
        GET /api/sources
        GET /api/sinks
        GET /api/sinks/{name}
        GET /api/sinks/{name}/dead
        GET /api/costs
        GET /api/sites/{site}/settings
        GET /api/history/trials
        GET /api/history/trials/{trial}
        DELETE /api/history/trials/{trial}
        GET /api/lake
        GET /api/lake/jobs
        GET /api/lake/tables/{table}/sample
        GET /api/tables
        GET /api/tables/{table}/sample
    """,
    Role.OPERATOR: """
        GET /sources/new
        POST /api/sources/trials
        GET /api/sources/trials/{trial}
        DELETE /api/sources/trials/{trial}
        POST /api/sources/trials/{trial}/proposals
        POST /api/sources/try
        POST /api/costs
        DELETE /api/costs
        POST /api/costs/hops
        PATCH /api/sites/{site}/settings
        DELETE /api/sites/{site}
        POST /api/sites/{site}/restart
        POST /api/sinks/{name}/retry
        POST /api/sinks/{name}/discard
        POST /api/lake/jobs
        DELETE /api/lake/jobs/{job}
        POST /api/simulate
        POST /api/simulate/past
        GET /api/calibration/tables
        POST /api/calibration/tables
        POST /api/calibration
        POST /api/calibration/heard
        POST /api/calibration/points
        DELETE /api/calibration/points/{point}
        GET /api/network/index
        POST /api/network/index
        GET /metrics
        GET /api/fleet
    """,
    Role.ADMINISTRATOR: """
        POST /api/fleet
        POST /api/fleet/{name}/revoke
        POST /api/fleet/{name}/rotate
        POST /api/fleet/{name}/rename
        DELETE /api/fleet/{name}
        GET /people
        GET /api/accounts
        POST /api/accounts
        PATCH /api/accounts/{name}
        DELETE /api/accounts/{name}
        GET /api/tokens
        POST /api/tokens
        DELETE /api/tokens/{token_id}
    """,
}
LEAST: dict[str, Role | str] = {
    route.strip(): role
    for role, routes in _BY_ROLE.items()
    for route in routes.strip().splitlines()
}
"""The least role of a route, by method and path. What of it somebody is told is another matter: a
viewer's own quotas, grants to him, results whose inputs he may read."""


def may(role: Role, route: str) -> bool:
    """Whether a role may use a route; one that is not stated is for administrators."""
    least = LEAST.get(route, Role.ADMINISTRATOR)
    order = [NOBODY, Role.VIEWER, Role.ANALYST, Role.OPERATOR, Role.ADMINISTRATOR]
    return order.index(role) >= order.index(least)
