"""Pages between the console and a provider: leaving for it, and coming back."""

from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from federated_optimizer.coordinator.contract.people_model import SignInRefusedError
from ui.pages.page_routes import templates
from ui.sign_in.provider.pending_sign_ins import SECONDS
from ui.sign_in.provider.provider_sign_in import ProviderSignIn
from ui.sign_in.sign_in_routes import NOT_KEPT, People, address_of, with_session

router = APIRouter(include_in_schema=False)
COOKIE = "pando_leaving"
PATH = "/sign-in"


def provider_of(request: Request) -> ProviderSignIn:
    """Return the provider of this console.

    Raises:
        HTTPException: 404: it has none.
    """
    provider: ProviderSignIn | None = request.app.state.provider
    if provider is None:
        raise HTTPException(404, "nobody signs in here at a provider")
    return provider


@router.get("/sign-in/provider")
async def leave(request: Request, next: str = "/") -> Response:  # noqa: A002  (name in the address)
    """Send a browser to the provider."""
    try:
        leaving = await provider_of(request).leave(next)
    except SignInRefusedError as error:
        return _refused(request, error)
    answer = RedirectResponse(leaving.address, 303, headers=NOT_KEPT)
    answer.set_cookie(
        COOKIE,
        leaving.browser,
        max_age=int(SECONDS),
        path=PATH,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",  # comes back with a browser that the provider, another site, sends here
    )
    return answer


@router.get("/sign-in/return")
async def come_back(request: Request, people: People) -> Response:
    """Let in who comes back from the provider."""
    provider = provider_of(request)
    browser = request.cookies.get(COOKIE, "")
    try:
        signed_in, next_page = await provider.come_back(
            people, request.query_params, browser, address_of(request)
        )
    except SignInRefusedError as error:
        return _refused(request, error)
    # A page, no redirect: a browser that another site has sent here brings the new cookie, which
    # is for this site's own requests only, not before a page of ours asks.
    page = HTMLResponse(
        '<!doctype html><title>Pando</title><meta http-equiv="refresh" '
        f'content="0;url={quote(next_page, safe="/?&=%")}">'.replace("&", "&amp;"),
        headers=NOT_KEPT,
    )
    page.delete_cookie(COOKIE, path=PATH)
    return with_session(request, page, signed_in)


def _refused(request: Request, error: SignInRefusedError) -> Response:
    label = request.app.state.provider.settings.label
    said = f"{error.message}. {error.hint}".strip()
    context = {"provider": label, "problem": said}
    return templates.TemplateResponse(request, "sign_in.html", context, status_code=401)
