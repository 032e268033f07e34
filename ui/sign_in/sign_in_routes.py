"""Signing in and out, and one's own account."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field

from federated_optimizer.coordinator.contract.people_model import (
    PeopleApi,
    PeopleError,
    SignedIn,
    SignInRefusedError,
    TooManyAttemptsError,
)
from federated_optimizer.coordinator.contract.principal import Principal, Role
from streamsql.data.types import MICROSECONDS, timestamp_text
from ui.api.routes import Asker
from ui.pages.page_routes import templates
from ui.request_checks import problem
from ui.sign_in.people_objects import account_object, new_token_object, token_object
from ui.sign_in.session_cookie import SessionCookie

MAX_TYPED = 256
"""Characters of a name or password that are looked at."""

router = APIRouter()
pages = APIRouter(include_in_schema=False)


class Credentials(BaseModel):
    """A name and a password."""

    name: str = Field(max_length=MAX_TYPED)
    password: str = Field(max_length=MAX_TYPED)
    cookie: bool = Field(
        True, description="Keep the session in a cookie; else the answer has its secret"
    )


class NewPassword(BaseModel):
    """A change of one's own password."""

    old: str = Field(max_length=MAX_TYPED)
    new: str = Field(max_length=MAX_TYPED)


class NewTokenOfMine(BaseModel):
    """A token for one's own account."""

    label: str = Field(max_length=200, examples=["nightly report"])
    role: Role | None = Field(None, description="The most it may do; the account's role if absent")
    days: float | None = Field(90, description="After which it expires; null: never")
    sources: list[str] | None = Field(
        None, max_length=200, description="The only sources, tables and views that it may read"
    )


async def people_of(request: Request) -> PeopleApi:
    """Return the people of this console.

    Raises:
        HTTPException: 404 where a console has none.
    """
    people: PeopleApi | None = request.app.state.people
    if people is None:
        raise HTTPException(404, "this console has no accounts")
    return people


def cookie_of(request: Request) -> SessionCookie:
    """Return the cookie of this console."""
    cookie: SessionCookie = request.app.state.session_cookie
    return cookie


def address_of(request: Request) -> str:
    """Return the address of the client."""
    return request.client.host if request.client else ""


def secret_of(request: Request) -> str:
    """Return the secret of the session or token that asks; empty where nobody has to sign in."""
    secret: str = getattr(request.state, "secret", "")
    return secret


People = Annotated[PeopleApi, Depends(people_of)]


@pages.get("/sign-in", response_class=HTMLResponse)
async def sign_in_page(request: Request) -> HTMLResponse:
    """The page on which people sign in."""
    provider = request.app.state.provider
    context = {"provider": "" if provider is None else provider.settings.label, "problem": ""}
    return templates.TemplateResponse(request, "sign_in.html", context)


@pages.get("/account", response_class=HTMLResponse)
async def account_page(request: Request) -> HTMLResponse:
    """The page of one's own account."""
    return templates.TemplateResponse(request, "account.html", {"page": "account"})


@router.get("/api/me")
async def me(request: Request) -> dict[str, Any]:
    """Tell who asks; without signing in, whether one has to."""
    principal: Principal | None = getattr(request.state, "principal", None)
    accounts: bool = getattr(request.state, "accounts", False)
    told: dict[str, Any] = {"accounts": accounts, "signed_in": accounts and principal is not None}
    if principal is not None and accounts:
        account = (await people_of(request)).account(principal.name)
        told |= {
            "name": principal.name,
            "role": principal.role,
            "token": principal.token or None,
            "account": None if account is None else account_object(account),
        }
    return told


@router.post("/api/sign-in")
async def sign_in(body: Credentials, request: Request, people: People) -> Response:
    """Begin a session with name and password."""
    signed_in = await people.sign_in(body.name, body.password, address_of(request))
    if not body.cookie:
        return JSONResponse({**_told(signed_in), "secret": signed_in.secret}, headers=NOT_KEPT)
    return with_session(request, JSONResponse(_told(signed_in)), signed_in)


@router.post("/api/sign-out")
async def sign_out(request: Request, people: People, asker: Asker) -> Response:
    """End the session that asks."""
    await people.sign_out(secret_of(request), asker)
    answer = JSONResponse({"signed_in": False})
    cookie_of(request).remove(answer, request.url.scheme)
    return answer


@router.post("/api/me/password")
async def change_password(
    body: NewPassword, request: Request, people: People, asker: Asker
) -> dict[str, Any]:
    """Change one's own password; one's other sessions end."""
    await people.check_password(asker.name, body.old, address_of(request))
    await people.set_password(asker.name, body.new, asker, keep=secret_of(request))
    return {"changed": True}


@router.get("/api/me/tokens")
async def my_tokens(people: People, asker: Asker) -> list[dict[str, Any]]:
    """List one's own tokens."""
    return [token_object(token) for token in people.tokens(asker.name)]


@router.post("/api/me/tokens")
async def create_my_token(body: NewTokenOfMine, people: People, asker: Asker) -> Response:
    """Make a token for one's own account; its secret is in this answer and nowhere else."""
    check_may_change_people(asker)
    made = await people.create_token(
        asker.name,
        body.label,
        asker,
        role=body.role or asker.role,
        days=body.days,
        sources=None if body.sources is None else tuple(body.sources),
    )
    return JSONResponse(new_token_object(made), headers=NOT_KEPT)


@router.delete("/api/me/tokens/{token_id}")
async def revoke_my_token(token_id: str, people: People, asker: Asker) -> dict[str, Any]:
    """Revoke one of one's own tokens."""
    check_may_change_people(asker)
    if all(token.id != token_id for token in people.tokens(asker.name)):
        raise HTTPException(404, f"you have no token {token_id!r:.80}")
    return token_object(await people.revoke_token(token_id, asker))


NOT_KEPT = {"Cache-Control": "no-store"}


def check_may_change_people(asker: Principal) -> None:
    """Do nothing for who may change accounts and tokens: a session, or an unlimited token.

    Raises:
        HTTPException: 403: a limited token could make one, or an account, without its limits.
    """
    unlimited = asker.role == Role.ADMINISTRATOR and asker.sources is None
    if asker.token and not unlimited:
        raise HTTPException(
            403, "a limited token cannot change accounts and tokens: sign in with a password"
        )


def with_session(request: Request, answer: Response, signed_in: SignedIn) -> Response:
    """Return an answer that begins a session in the browser."""
    now = request.app.state.wall_clock()
    seconds = max(0, (signed_in.expires - now) // MICROSECONDS)
    cookie_of(request).put(answer, signed_in.secret, request.url.scheme, seconds)
    answer.headers.update(NOT_KEPT)
    return answer


def _told(signed_in: SignedIn) -> dict[str, Any]:
    principal = signed_in.principal
    return {
        "signed_in": True,
        "name": principal.name,
        "role": principal.role,
        "expires": timestamp_text(signed_in.expires),
    }


async def people_problem(_request: Request, error: Exception) -> Response:
    """Return what went wrong with people, with the status that programs expect."""
    match error:
        case TooManyAttemptsError():
            answer = problem(429, error.code, error.message, error.hint)
            answer.headers["Retry-After"] = str(max(1, round(error.retry_after)))
            return answer
        case SignInRefusedError():
            return problem(401, error.code, error.message, error.hint)
        case PeopleError() if error.code.startswith("unknown_"):
            return problem(404, error.code, error.message, error.hint)
        case PeopleError():
            return problem(400, error.code, error.message, error.hint)
        case _:
            raise error
