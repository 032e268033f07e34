"""REST: settings of engine sites, changed while they run; sites that start again or are removed."""

from typing import Any

import msgspec
from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse

from federated_optimizer.coordinator.contract.audit_model import Outcome
from streamsql.errors import BindingError, DeploymentError
from streamsql.wire.site_messages import ENGINE_ROLES
from streamsql.wire.site_settings import SiteSettings
from ui.api.routes import Asker, Coordinator
from ui.request_checks import problem

router = APIRouter(prefix="/api")

Changes = dict[str, bool | int | float | str | None]


@router.get("/sites/{site}/settings")
async def site_settings(site: str, coordinator: Coordinator) -> dict[str, Any]:
    """Return the settings of a gateway or base site."""
    try:
        return settings_object(coordinator.site_settings(site))
    except KeyError:
        raise _unknown(site) from None


@router.patch("/sites/{site}/settings", response_model=None)
async def change_site(
    site: str, changes: Changes, coordinator: Coordinator
) -> dict[str, Any] | JSONResponse:
    """Change settings of a gateway or base site; the others keep their values."""
    try:
        return settings_object(await coordinator.change_site(site, changes))
    except KeyError:
        raise _unknown(site) from None
    except BindingError as error:
        return problem(422, error.code, error.message, error.hint)


@router.delete("/sites/{site}", response_model=None)
async def remove_gateway(site: str, coordinator: Coordinator) -> dict[str, Any] | JSONResponse:
    """Remove a gateway permanently; a gateway that is online is refused."""
    try:
        await coordinator.remove_gateway(site)
    except KeyError:
        raise _unknown(site) from None
    except BindingError as error:
        return problem(422, error.code, error.message, error.hint)
    return {"site": site}


@router.post("/sites/{site}/restart", response_model=None)
async def restart_site(
    site: str, coordinator: Coordinator, asker: Asker
) -> dict[str, Any] | JSONResponse:
    """Let the process of a gateway or base site start again; it continues where it was."""
    roles = {info.site: info.role for info in coordinator.sites()}
    if roles.get(site) not in ENGINE_ROLES:
        raise _unknown(site)
    try:
        coordinator.command(site, "restart", {})
    except DeploymentError as error:
        coordinator.audit.note(asker, "restart", site, Outcome.FAILED, error.message)
        return problem(409, error.code, error.message, error.hint)
    coordinator.audit.note(asker, "restart", site, Outcome.DONE)
    return {"site": site}


def settings_object(settings: SiteSettings) -> dict[str, Any]:
    """Return settings by name."""
    shown: dict[str, Any] = msgspec.to_builtins(settings)
    return shown


def _unknown(site: str) -> HTTPException:
    return HTTPException(404, f"there is no gateway or base site {site!r:.80}")
