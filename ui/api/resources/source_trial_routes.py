"""REST: sources tried at gateways before they are created, and devices that announce themselves."""

import base64
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, Field

from federated_optimizer.coordinator.contract.trial_model import MappedSample, TrialInfo
from streamsql.data.schema import Schema
from streamsql.data.types import timestamp_text
from streamsql.mapping.offers import MAX_RECORDS, OfferedRecord
from streamsql.proposals.proposal import Proposal
from streamsql.redaction import redacted
from streamsql.wire.trial_messages import MAX_PAYLOADS, MAX_SECONDS, TrialSample
from ui.api.objects import Object, row_object, schema_object
from ui.api.routes import MAX_TEXT, Coordinator, while_asked

router = APIRouter(prefix="/api/sources")

MAX_SHOWN = 4_000
"""Characters of a payload."""
MAX_SENT = 200
"""Samples of an answer; those of an announcing broker are many, and their statements are shown."""

_NAME = 64
_TextLine = Annotated[str, Field(max_length=4_000)]


class Trial(BaseModel):
    """A trial of a statement, of an endpoint to listen to, or of one whose devices are searched."""

    gateway: str = Field("", max_length=_NAME, description="Empty: one that has the endpoint")
    text: str = Field("", max_length=MAX_TEXT, description="A CREATE SOURCE statement")
    endpoint: str = Field("", max_length=_NAME, description="Where there is no text")
    options: dict[str, _TextLine] = Field(
        default={}, max_length=40, description="Of the connector, with an endpoint: topic, url, …"
    )
    discover: bool = Field(False, description="Listen to what devices announce on the endpoint")
    seconds: float = Field(10.0, gt=0, le=MAX_SECONDS)
    payloads: int = Field(MAX_PAYLOADS, ge=1, le=MAX_PAYLOADS)


class Wanted(BaseModel):
    """Time zone of devices, and the offered values that are wanted."""

    zone: str = Field("", max_length=_NAME, description="IANA name, for times that name none")
    chosen: dict[_TextLine, list[_TextLine]] | None = Field(
        None, max_length=MAX_RECORDS, description="Addresses by the name of their record"
    )


class TriedText(BaseModel):
    """A statement to try on what a trial has heard."""

    trial: str = Field(max_length=_NAME)
    text: str = Field(max_length=MAX_TEXT)


@router.post("/trials", status_code=201)
async def begin(body: Trial, request: Request, coordinator: Coordinator) -> Object:
    """Begin a trial at a gateway; nothing is stored, and no query sees it."""
    trials = coordinator.trials
    if body.text:
        with while_asked(request):
            found = await trials.try_statement(
                body.gateway, body.text, seconds=body.seconds, payloads=body.payloads
            )
    elif body.discover:
        found = trials.discover(body.gateway, body.endpoint, seconds=body.seconds)
    else:
        found = trials.listen(
            body.gateway,
            body.endpoint,
            body.options,
            seconds=body.seconds,
            payloads=body.payloads,
        )
    return trial_object(found, 0)


@router.get("/trials/{trial}")
async def look(
    trial: str, coordinator: Coordinator, since: Annotated[int, Query(ge=0)] = 0
) -> Object:
    """Return a trial with what has come after the first `since` payloads."""
    try:
        return trial_object(coordinator.trials.info(trial), since)
    except KeyError:
        raise _unknown(trial) from None


@router.delete("/trials/{trial}")
async def stop(trial: str, coordinator: Coordinator) -> Object:
    """End a trial early; what has come stays for a while."""
    try:
        found = coordinator.trials.stop(trial)
    except KeyError:
        raise _unknown(trial) from None
    return trial_object(found, len(found.samples))


@router.post("/trials/{trial}/proposals")
async def proposals(
    trial: str, body: Wanted, request: Request, coordinator: Coordinator
) -> list[Object]:
    """Return statements for what has come, the likeliest first."""
    try:
        with while_asked(request):
            found = await coordinator.trials.propose(trial, body.zone, body.chosen)
    except KeyError:
        raise _unknown(trial) from None
    return [proposal_object(proposal) for proposal in found]


@router.post("/try")
async def try_text(body: TriedText, request: Request, coordinator: Coordinator) -> Object:
    """Return what a statement makes of the payloads of a trial, one entry for each."""
    try:
        with while_asked(request):
            found = await coordinator.trials.map(body.trial, body.text)
    except KeyError:
        raise _unknown(body.trial) from None
    return {
        "columns": schema_object(found.columns),
        "samples": [mapped_object(found.columns, sample) for sample in found.samples[:MAX_SENT]],
    }


def trial_object(trial: TrialInfo, since: int) -> Object:
    """Return a trial; `samples` begin behind the first `since` ones."""
    new = trial.samples[since : since + MAX_SENT]
    return {
        "id": trial.id,
        "gateway": trial.gateway,
        "columns": schema_object(trial.columns),
        "samples": [sample_object(trial.columns, sample) for sample in new],
        "heard": len(trial.samples),
        "browses": trial.browses,
        # Once, when all are known: a page asks twice a second.
        "offers": [offered_object(record) for record in trial.offers] if trial.done else [],
        "dropped": trial.dropped,
        "notes": list(map(redacted, trial.notes)),
        "problem": redacted(trial.problem),
        "hint": redacted(trial.hint),
        "done": trial.done,
    }


def sample_object(columns: Schema, sample: TrialSample) -> Object:
    """Return a payload as text, or in base64 if it is none, with the rows made of it."""
    text = _text(sample.payload)
    shown = base64.b64encode(sample.payload).decode() if text is None else text
    facts: dict[str, Any] = {name: v for name, v in sample.facts.items() if name != "topic"}
    has_columns = len(columns) > 0
    return {
        "arrival": timestamp_text(sample.arrival),
        "topic": sample.facts.get("topic") or "",
        "facts": facts,
        "payload": shown[:MAX_SHOWN],
        "is_text": text is not None,
        "is_record": sample.is_record,
        "size": sample.size,
        "cut": sample.size > len(sample.payload) or len(shown) > MAX_SHOWN,
        "rows": [row_object(columns, row) for row in sample.rows] if has_columns else [],
        "problems": list(sample.problems) if has_columns else [],
        "ignored": sample.ignored and has_columns,
    }


def offered_object(record: OfferedRecord) -> Object:
    """Return a record that the device offers."""
    return {
        "name": record.name,
        "options": dict(record.options),
        "values": [
            {
                "name": value.name,
                "address": value.address,
                "type": None if value.type is None else str(value.type),
                "unit": value.unit,
                "sample": value.sample,
            }
            for value in record.values
        ],
    }


def mapped_object(columns: Schema, sample: MappedSample) -> Object:
    """Return the rows that a statement makes of a payload."""
    return {
        "rows": [row_object(columns, row) for row in sample.rows],
        "problems": list(sample.problems),
        "ignored": sample.ignored,
    }


def proposal_object(proposal: Proposal) -> Object:
    """Return a proposed statement."""
    return {
        "name": proposal.name,
        "title": proposal.title,
        "text": proposal.text,
        "topics": list(proposal.topics),
        "samples": proposal.samples,
        "columns": schema_object(proposal.schema),
    }


def _text(payload: bytes) -> str | None:
    """Return a payload as text, or None if it is none that can be shown."""
    try:
        text = payload.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A cut may have gone through a character.
        if len(payload) - error.start > 3 or not error.start:
            return None
        text = payload[: error.start].decode("utf-8-sig")
    return text if text.isprintable() or not any(_is_control(each) for each in text) else None


def _is_control(character: str) -> bool:
    return ord(character) < 32 and character not in "\t\r\n"


def _unknown(trial: str) -> HTTPException:
    return HTTPException(404, f"there is no trial {trial!r:.80}; trials are kept for a while only")
