"""REST: how engine sites work, read and changed while they run."""

from typing import Any

import msgspec
from fastapi import APIRouter, HTTPException

from streamsql.errors import BindingError
from streamsql.wire.site_settings import SiteSettings
from ui.api.routes import Coordinator

router = APIRouter(prefix="/api")

Changes = dict[str, bool | int | float | str | None]


@router.get("/sites/{site}/settings")
async def site_settings(site: str, coordinator: Coordinator) -> dict[str, Any]:
    """Return what is set at a gateway or base site."""
    try:
        return settings_object(coordinator.site_settings(site))
    except KeyError:
        raise _unknown(site) from None


@router.patch("/sites/{site}/settings")
async def change_site(site: str, changes: Changes, coordinator: Coordinator) -> dict[str, Any]:
    """Change some settings of a gateway or base site; the others stay."""
    try:
        return settings_object(await coordinator.change_site(site, changes))
    except KeyError:
        raise _unknown(site) from None
    except BindingError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise HTTPException(422, f"{error.message}{hint}") from None


def settings_object(settings: SiteSettings) -> dict[str, Any]:
    """Return settings by name."""
    shown: dict[str, Any] = msgspec.to_builtins(settings)
    return shown


def _unknown(site: str) -> HTTPException:
    return HTTPException(404, f"there is no gateway or base site {site!r:.80}")
