"""Routes of grants and quotas. They are changed by statements: GRANT, REVOKE, ALTER USER."""

from typing import Any

from fastapi import APIRouter, HTTPException
from msgspec.structs import asdict

from streamsql.catalog.catalog import kind_of
from streamsql.data.types import timestamp_text
from ui.api.routes import Coordinator

router = APIRouter(prefix="/api")


@router.get("/grants")
async def grants(coordinator: Coordinator) -> dict[str, Any]:
    """List grants and makers: all for administrators, else what concerns the asker."""
    kinds = {found.name.lower(): kind_of(found) for found in coordinator.definitions()}
    return {
        "grants": [
            {
                "kind": kinds.get(grant.relation, ""),
                "relation": grant.relation,
                "to": str(grant.grantee.kind),
                "name": grant.grantee.name,
                "by": grant.by,
                "since": timestamp_text(grant.at),
            }
            for grant in coordinator.grants.grants()
        ],
        "makers": coordinator.grants.makers(),
    }


@router.get("/quotas/{account}")
async def quotas(account: str, coordinator: Coordinator) -> dict[str, Any]:
    """Show what an account may use and uses: one's own, or any for administrators."""
    try:
        found, used = coordinator.grants.quotas(account), coordinator.grants.usage(account)
    except KeyError:
        raise HTTPException(404, f"there is no account {account!r:.80}") from None
    return {"account": account, "quotas": asdict(found), "usage": asdict(used)}
