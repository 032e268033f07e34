"""Accounts and tokens of everybody, for administrators."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field

from federated_optimizer.coordinator.contract.principal import Role
from ui.api.routes import Asker
from ui.pages.page_routes import templates
from ui.sign_in.people_objects import account_object, new_token_object, token_object
from ui.sign_in.sign_in_routes import (
    MAX_TYPED,
    NOT_KEPT,
    NewTokenOfMine,
    People,
    check_may_change_people,
)

router = APIRouter(prefix="/api")
pages = APIRouter(include_in_schema=False)


class NewAccount(BaseModel):
    """An account that signs in with a password."""

    name: str = Field(max_length=MAX_TYPED, examples=["ann"])
    role: Role
    password: str = Field(max_length=MAX_TYPED)


class AccountChange(BaseModel):
    """A change of an account; what is absent stays."""

    role: Role | None = None
    disabled: bool | None = None
    password: str | None = Field(None, max_length=MAX_TYPED)


class NewTokenFor(NewTokenOfMine):
    """A token for any account."""

    account: str = Field(max_length=MAX_TYPED)


@pages.get("/people", response_class=HTMLResponse)
async def people_page(request: Request) -> HTMLResponse:
    """The page of accounts and tokens."""
    return templates.TemplateResponse(request, "people.html", {"page": "people"})


@router.get("/accounts")
async def accounts(people: People) -> list[dict[str, Any]]:
    """List the accounts."""
    return [account_object(account) for account in people.accounts()]


@router.post("/accounts")
async def add_account(body: NewAccount, people: People, asker: Asker) -> dict[str, Any]:
    """Add an account."""
    check_may_change_people(asker)
    return account_object(await people.add_account(body.name, body.role, body.password, asker))


@router.patch("/accounts/{name}")
async def change_account(
    name: str, body: AccountChange, people: People, asker: Asker
) -> dict[str, Any]:
    """Change an account's role, disable or enable it, or set its password."""
    check_may_change_people(asker)
    if body.password is not None:
        await people.set_password(name, body.password, asker)
    changed = await people.change_account(name, asker, role=body.role, disabled=body.disabled)
    return account_object(changed)


@router.delete("/accounts/{name}")
async def remove_account(name: str, people: People, asker: Asker) -> dict[str, Any]:
    """Remove an account with its sessions and tokens."""
    check_may_change_people(asker)
    await people.remove_account(name, asker)
    return {"removed": name.lower()}


@router.get("/tokens")
async def tokens(people: People, account: str | None = None) -> list[dict[str, Any]]:
    """List the tokens of all accounts, or of one."""
    return [token_object(token) for token in people.tokens(account)]


@router.post("/tokens")
async def create_token(body: NewTokenFor, people: People, asker: Asker) -> Response:
    """Make a token; its secret is in this answer and nowhere else."""
    check_may_change_people(asker)
    made = await people.create_token(
        body.account,
        body.label,
        asker,
        role=body.role,
        days=body.days,
        sources=None if body.sources is None else tuple(body.sources),
    )
    return JSONResponse(new_token_object(made), headers=NOT_KEPT)


@router.delete("/tokens/{token_id}")
async def revoke_token(token_id: str, people: People, asker: Asker) -> dict[str, Any]:
    """Revoke a token."""
    check_may_change_people(asker)
    return token_object(await people.revoke_token(token_id, asker))
