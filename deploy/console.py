"""`python -m deploy.console --config FILE`: coordinator and console, with the engines they lack.

The console itself knows neither the stream engine, which explains rows, nor the lake, on which
queries are tried; here they are put together.
"""

import sys

import msgspec

from deploy.explainer import EngineExplainer
from deploy.history.asked_sizes import AskedSizes
from deploy.history.engine_runner import EngineRunner
from deploy.history.opened_past import OpenedPast
from static_engine.lake.lake_settings import LakeSettings
from streamsql.errors import DeploymentError
from ui.__main__ import main
from ui.console_settings import ConsoleSettings


def open_history(settings: ConsoleSettings) -> EngineRunner | None:
    """Return the engine that runs queries on the past; None where none is kept.

    Raises:
        DeploymentError: The setting is malformed.
    """
    if settings.lake is None:
        return None
    try:
        lake = msgspec.convert(settings.lake, LakeSettings)
    except msgspec.ValidationError as error:
        raise DeploymentError(
            f"setting lake: {error}", hint="its fields are catalog, warehouse and options"
        ) from error
    return EngineRunner(OpenedPast(lake), AskedSizes(lake))


if __name__ == "__main__":
    sys.exit(main(EngineExplainer(), open_history, program="deploy.console"))
