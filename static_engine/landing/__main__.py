"""`python -m static_engine.landing --config FILE`: run a lander until SIGINT or SIGTERM."""

import asyncio
import contextlib
import os
import sys

from host.files.site_directory import SiteDirectory
from host.metrics.status_server import serving_status
from host.mqtt import MessageClient, Will, open_service_client
from host.service_process import on_stop_signals, read_command_line
from static_engine.landing.lander import Lander
from static_engine.landing.lander_figures import lander_figures, lander_problem
from static_engine.landing.lander_settings import LanderSettings, load_settings
from static_engine.landing.lander_state import will_state
from streamsql.errors import FederationError
from streamsql.wire.codec import encode_json
from streamsql.wire.topics import Topics


def client_of(settings: LanderSettings, epoch: int) -> MessageClient:
    """Return the broker client that settings describe, with our will."""
    topic = Topics(settings.site).host_state(settings.site_id)
    will = Will(topic, encode_json(will_state(epoch)))
    return open_service_client(
        settings, settings.site_id, will, clean=False, acknowledges_by_hand=True
    )


async def _until_signalled(settings: LanderSettings) -> None:
    with SiteDirectory(settings.data_path) as directory:
        epoch = directory.next_epoch()
        lander = Lander(settings, epoch, client_of(settings, epoch))
        async with serving_status(
            settings.metrics_host,
            settings.metrics_port,
            lambda: lander_figures(lander),
            lambda: lander_problem(lander),
        ):
            job = asyncio.create_task(lander.run())
            on_stop_signals(job.cancel)
            with contextlib.suppress(asyncio.CancelledError):
                await job


def main() -> int:
    """Return the process's exit status: 0 stopped, 2 something the operator can fix."""
    config = read_command_line("static_engine.landing", __doc__, "JSON settings file")
    os.umask(0o077)  # readings are for nobody else
    try:
        asyncio.run(_until_signalled(load_settings(config)))
    except (FederationError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
