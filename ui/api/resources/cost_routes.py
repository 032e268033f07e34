"""REST: constants of the optimizer, calibrated ones and defaults."""

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, StrictFloat, StrictInt

from federated_optimizer.coordinator.contract.cost_model import CostConstant, Measured
from streamsql.data.types import timestamp_text
from streamsql.errors import BindingError, DeploymentError
from ui.api.objects import Object
from ui.api.routes import Coordinator
from ui.request_checks import problem

router = APIRouter(prefix="/api/costs")

MAX_CONSTANTS = 100
MAX_NAME = 60
MAX_ROUNDS = 1_000_000
ROUNDS = 20


class Number(BaseModel):
    """A measured constant with its spread."""

    value: StrictFloat = Field(description="Median of several rounds")
    low: StrictFloat = Field(description="The first quartile")
    high: StrictFloat = Field(description="The third quartile")
    rounds: StrictInt = Field(
        1, ge=1, le=MAX_ROUNDS, description="How many there were; the more, the surer"
    )


class Calibration(BaseModel):
    """Constants that were measured."""

    values: dict[Annotated[str, Field(max_length=MAX_NAME)], Number] = Field(
        min_length=1, max_length=MAX_CONSTANTS
    )
    place: str = Field(
        "", max_length=MAX_NAME, description="Empty: all sites; or gateways, or base"
    )


@router.get("")
async def constants(coordinator: Coordinator) -> list[Object]:
    """List the constants that can be calibrated, and the times of Spark."""
    return [constant_object(each) for each in coordinator.costs.all()]


@router.post("", response_model=None)
async def calibrate(body: Calibration, coordinator: Coordinator) -> list[Object] | JSONResponse:
    """Take measured constants; plans are made with them from now on."""
    values = {name: Measured(n.value, n.low, n.high, n.rounds) for name, n in body.values.items()}
    try:
        found = await coordinator.costs.calibrate(values, body.place)
    except BindingError as error:
        return problem(422, error.code, error.message, error.hint)
    return [constant_object(each) for each in found]


@router.delete("")
async def forget(coordinator: Coordinator) -> dict[str, int]:
    """Go back to the defaults."""
    return {"forgotten": await coordinator.costs.forget()}


@router.post("/hops", response_model=None)
async def hops(coordinator: Coordinator) -> dict[str, Any] | JSONResponse:
    """Time messages from the coordinator over the broker to itself, one after the other."""
    try:
        return {"milliseconds": await coordinator.costs.hops(ROUNDS)}
    except DeploymentError as error:
        return problem(503, error.code, error.message, error.hint)


def constant_object(constant: CostConstant) -> Object:
    """Return a constant as JSON."""
    measured = constant.measured
    at = None if measured is None else timestamp_text(measured)
    return {**constant._asdict(), "measured": at}
