"""The layer before the application that knows who asks, and lets pass who may."""

import asyncio
from urllib.parse import quote

from msgspec.structs import replace
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from federated_optimizer.coordinator.contract.people_model import Admission, PeopleApi
from federated_optimizer.coordinator.contract.principal import Principal
from ui.request_checks import problem
from ui.sign_in.route_roles import OPEN, Access, Least, RouteRoles
from ui.sign_in.session_cookie import SessionCookie

NEEDS_TOKEN = {"WWW-Authenticate": 'Bearer realm="Pando"'}


class SignInLayer:
    """Puts `principal` and `admission` into a request's state, or refuses the request.

    Args:
        app: Behind it.
        people: Who may sign in.
        cookie: Of this console.
        is_exposed: Whether others than this machine's users reach the console: then nobody may
            ask without an account. Else whoever asks may do everything until there is one.
        roles: What routes need.
    """

    def __init__(
        self,
        app: ASGIApp,
        people: PeopleApi,
        cookie: SessionCookie,
        *,
        is_exposed: bool,
        roles: RouteRoles | None = None,
    ) -> None:
        self._app = app
        self._people = people
        self._cookie = cookie
        self._is_exposed = is_exposed
        self._roles = roles or RouteRoles()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        unsigned = None if self._is_exposed else self._people.unsigned
        state["accounts"] = unsigned is None
        if unsigned is not None:
            state["principal"] = unsigned.principal
            await _while_admitted(self._app, unsigned, scope, receive, send)
            return
        headers = Headers(scope=scope)
        secret = self._secret(headers, scope["scheme"])
        admission = self._people.admit(secret) if secret else None
        least = self._roles.least(scope["method"], scope["path"])
        state["admission"] = admission
        state["secret"] = secret if admission is not None else ""
        state["principal"] = None
        if admission is not None:
            address = scope["client"][0] if scope.get("client") else ""
            state["principal"] = replace(admission.principal, address=address)
        if least is OPEN:
            await self._app(scope, receive, send)
        elif admission is None:
            await _nobody(scope, headers)(scope, receive, send)
        else:
            refusal = _refusal(least, admission.principal)
            if refusal is not None:
                await refusal(scope, receive, send)
            else:
                await _while_admitted(self._app, admission, scope, receive, send)

    def _secret(self, headers: Headers, scheme: str) -> str:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return token.strip()
        return self._cookie.secret(headers, scheme)


def _nobody(scope: Scope, headers: Headers) -> Response:
    """Return the answer to somebody who has not signed in: a page to do so, or words."""
    path = scope["path"]
    is_page = scope["method"] in ("GET", "HEAD") and "text/html" in headers.get("accept", "")
    if is_page and not path.startswith(("/api/", "/static/")):
        query = scope.get("query_string", b"").decode("latin-1")
        wanted = f"{path}?{query}" if query else path
        return RedirectResponse(f"/sign-in?next={quote(wanted[:1000], safe='')}", 303)
    answer = problem(
        401,
        "not_signed_in",
        "sign in first: this console answers only people it knows",
        "in a browser open /sign-in; at the command line `pando login`, or set PANDO_TOKEN",
    )
    answer.headers.update(NEEDS_TOKEN)
    return answer


def _refusal(least: Least | None, principal: Principal) -> Response | None:
    if least is None:
        return problem(404, "not_found", "there is nothing at this address for this method")
    if isinstance(least, Access) or principal.role.may_act_as(least):
        return None
    limited = f"the token {principal.token!r} of " if principal.token else ""
    return problem(
        403,
        "role_too_low",
        f"{limited}{principal.name} is {principal.role}; this needs the role {least}",
        "ask an administrator for that role",
    )


async def _while_admitted(
    app: ASGIApp, admission: Admission, scope: Scope, receive: Receive, send: Send
) -> None:
    """Serve a request; an open stream ends when the session or token does."""
    in_body, started, complete = True, False, False
    ending: asyncio.Task[bool] | None = None

    async def received() -> Message:
        nonlocal in_body, ending
        if in_body:
            message = await receive()
            in_body = message["type"] == "http.request" and message.get("more_body", False)
            return message
        ending = ending or asyncio.create_task(admission.ended.wait())
        more = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({ending, more}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not more.done():
                more.cancel()
        return more.result() if more.done() else {"type": "http.disconnect"}

    async def sent(message: Message) -> None:
        nonlocal started, complete
        await send(message)
        started = started or message["type"] == "http.response.start"
        is_body = message["type"] == "http.response.body"
        complete = complete or (is_body and not message.get("more_body", False))

    admission.readers += 1
    try:
        await app(scope, received, sent)
        if started and not complete and admission.ended.is_set():
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        admission.readers -= 1
        if ending is not None:
            ending.cancel()
