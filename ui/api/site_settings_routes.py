"""REST: how engine sites work, read and changed while they run; gateways that are removed."""

from typing import Any

import msgspec
from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse

from streamsql.errors import BindingError
from streamsql.wire.site_settings import SiteSettings
from ui.api.routes import Coordinator
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


def settings_object(settings: SiteSettings) -> dict[str, Any]:
    """Return settings by name."""
    shown: dict[str, Any] = msgspec.to_builtins(settings)
    return shown


def _unknown(site: str) -> HTTPException:
    return HTTPException(404, f"there is no gateway or base site {site!r:.80}")
