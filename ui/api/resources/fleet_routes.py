"""REST: enrolment of gateways. Administrators do all of it, but for joining with a token."""

from typing import Any

import msgspec
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

from federated_optimizer.coordinator.contract.fleet_model import Enrolment, JoinRefusedError
from federated_optimizer.coordinator.contract.principal import Principal, Role
from streamsql.data.types import timestamp_text
from streamsql.wire.enrolment import JoinRequest
from ui.api.routes import Asker, Coordinator
from ui.request_checks import problem

router = APIRouter(prefix="/api/fleet")

_TIMES = ("made", "token_until", "joined", "valid_until", "rotated", "revoked")
MAX_JOIN_BYTES = 30_000


class Provisioning(BaseModel):
    """A gateway to provision."""

    name: str = Field(max_length=64, examples=["gw-4"])
    hours: float = Field(24.0, gt=0, le=720, description="For how long the token is good")


class NewName(BaseModel):
    """Another name of a gateway."""

    name: str = Field(max_length=64, examples=["north-wing"])


@router.get("")
async def enrolments(coordinator: Coordinator, asker: Asker) -> list[dict[str, Any]]:
    """List the gateways that were provisioned."""
    _check(asker, Role.OPERATOR)
    return [enrolment_object(each) for each in coordinator.fleet.enrolments()]


@router.post("")
async def provision(body: Provisioning, coordinator: Coordinator, asker: Asker) -> dict[str, Any]:
    """Make account, rights and one-time token of a gateway; the answer alone has the token."""
    _check(asker)
    made = await coordinator.fleet.provision(body.name, asker, hours=body.hours)
    return {"name": made.name, "token": made.token, "until": timestamp_text(made.until)}


@router.get("/authority", response_class=PlainTextResponse)
async def authority(coordinator: Coordinator) -> PlainTextResponse:
    """Return the certificate of the federation's authority, in PEM form, to everybody."""
    pem = coordinator.fleet.authority
    if not pem:
        raise HTTPException(404, "this federation has no certificate authority")
    return PlainTextResponse(pem, media_type="application/x-pem-file")


@router.post("/join", response_model=None)
async def join(request: Request, coordinator: Coordinator) -> dict[str, Any] | JSONResponse:
    """Give a gateway its credentials for its token (`JoinRequest`); needs no account."""
    content = await request.body()
    if len(content) > MAX_JOIN_BYTES:
        return problem(413, "too_large", f"at most {MAX_JOIN_BYTES} bytes are accepted")
    try:
        asked = msgspec.json.decode(content, type=JoinRequest)
    except (msgspec.MsgspecError, RecursionError):
        return problem(422, "invalid", "expected an object with token and request")
    try:
        answer = await coordinator.fleet.join(asked, request.client.host if request.client else "")
    except JoinRefusedError as error:
        return problem(403, error.code, error.message, error.hint)
    given: dict[str, Any] = msgspec.to_builtins(answer)
    return given


@router.post("/{name}/revoke")
async def revoke(name: str, coordinator: Coordinator, asker: Asker) -> dict[str, Any]:
    """Let the broker refuse a gateway and cut it off."""
    _check(asker)
    try:
        return enrolment_object(await coordinator.fleet.revoke(name, asker))
    except KeyError:
        raise _unknown(name) from None


@router.post("/{name}/rotate")
async def rotate(name: str, coordinator: Coordinator, asker: Asker) -> dict[str, Any]:
    """Give a connected gateway a new key, certificate and password."""
    _check(asker)
    try:
        return enrolment_object(await coordinator.fleet.rotate(name, asker))
    except KeyError:
        raise _unknown(name) from None


@router.post("/{name}/rename")
async def rename(
    name: str, body: NewName, coordinator: Coordinator, asker: Asker
) -> dict[str, Any]:
    """Give a connected gateway another name."""
    _check(asker)
    try:
        return enrolment_object(await coordinator.fleet.rename(name, body.name, asker))
    except KeyError:
        raise _unknown(name) from None


@router.delete("/{name}")
async def retire(name: str, coordinator: Coordinator, asker: Asker) -> dict[str, Any]:
    """Remove a gateway permanently: account, rights, and what is known of it."""
    _check(asker)
    try:
        await coordinator.fleet.retire(name, asker)
    except KeyError:
        raise _unknown(name) from None
    return {"name": name}


def enrolment_object(enrolment: Enrolment) -> dict[str, Any]:
    """Return an enrolment without the hash of its token; a time that never was is null."""
    shown = {name: getattr(enrolment, name) for name in Enrolment.__struct_fields__}
    del shown["token_hash"]
    for name in _TIMES:
        shown[name] = timestamp_text(shown[name]) if shown[name] else None
    return shown


def _check(asker: Principal, least: Role = Role.ADMINISTRATOR) -> None:
    if not asker.role.may_act_as(least):
        raise HTTPException(403, f"this needs the role {least}; {asker.name} is {asker.role}")


def _unknown(name: str) -> HTTPException:
    return HTTPException(404, f"no gateway {name!r:.80} was provisioned")
