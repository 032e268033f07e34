"""`python -m static_engine --config FILE`: run a static engine until SIGINT or SIGTERM."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from host.files.epoch_file import next_epoch
from host.files.site_directory import SiteDirectory
from host.metrics.service_figures import connection_problem
from host.metrics.status_server import serving_status
from host.mqtt import MessageClient, Will, open_service_client
from host.service_process import on_stop_signals, read_command_line
from static_engine.care.workers import CurrentWorkers, LocalWorkers
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import StaticExecutor
from static_engine.filling.lake_pieces import LakePieces
from static_engine.history.past_readings import PastReadings
from static_engine.lake.lake import Lake
from static_engine.lake.managed_tables import ManagedTables
from static_engine.pipeline.piped_executor import PipedExecutor
from static_engine.service.engine_figures import static_figures
from static_engine.service.engine_reports import will_state
from static_engine.service.lake_service import LakeService
from static_engine.service.static_engine import MakeExecutor, StaticEngine
from static_engine.sources.table_addresses import TableAddresses
from static_engine.sources.table_locations import Locations
from static_engine.static_settings import StaticSettings, load_settings
from static_engine.tables.table_store import TableStore
from streamsql.algebra.user_functions import INSTALLED, modules_of
from streamsql.errors import DeploymentError, FederationError
from streamsql.wire.codec import encode_json
from streamsql.wire.topics import Topics

if TYPE_CHECKING:
    from static_engine.pipeline.spark_pipeline import SparkPipeline


def client_of(settings: StaticSettings, epoch: int) -> MessageClient:
    """Return the broker client that settings describe, with our will."""
    topic = Topics(settings.site).host_state(settings.site_id)
    will = Will(topic, encode_json(will_state(epoch)))
    return open_service_client(settings, settings.site_id, will)


def store_of(settings: StaticSettings) -> TableStore:
    """Return the table store that settings describe."""
    locations = Locations(
        settings.base_path,
        tuple(Path(folder).absolute() for folder in settings.table_folders),
        (settings.data_path, *(Path(folder).absolute() for folder in settings.closed_folders)),
        settings.database_dialects,
        settings.changed_sources,
        TableAddresses(Path(settings.secrets_file).absolute() if settings.secrets_file else None),
        ManagedTables(settings.lake) if settings.lake is not None else None,
        settings.table_stores,
    )
    return TableStore(
        locations,
        settings.data_path / "snapshots",
        max_rows=settings.max_table_rows,
        snapshots=settings.use_spark,
    )


def lake_of(settings: StaticSettings) -> Lake | None:
    """Return the lake that settings describe.

    Raises:
        LakeError: It cannot be opened.
    """
    return None if settings.lake is None else Lake(settings.lake)


def pipeline_of(settings: StaticSettings) -> "SparkPipeline | None":
    """Return the pipeline that settings describe; None: readings are not kept.

    Raises:
        DeploymentError: Spark is not installed.
        LakeError: What the pipeline has kept for itself is damaged.
    """
    if settings.lake is None or not settings.segments or not settings.use_spark:
        return None
    try:
        from static_engine.pipeline.spark_pipeline import PipelineSettings, SparkPipeline  # noqa: PLC0415
    except ImportError as error:
        raise _not_installed(error) from error
    return SparkPipeline(
        PipelineSettings(
            settings.site,
            settings.lake,
            Path(settings.segments).absolute(),
            settings.data_path / "pipeline",
            settings.batch_seconds,
        )
    )


def executor_maker(
    settings: StaticSettings,
    past: PastReadings,
    workers: CurrentWorkers,
    pipeline: "SparkPipeline | None" = None,
) -> MakeExecutor:
    """Return what starts the engine that settings ask for, and the pipeline in it.

    Its workers care for the lake, too.
    """
    limit = settings.max_result_rows

    def local(store: TableStore, _progress: Callable[[str], None]) -> StaticExecutor:
        return LocalExecutor(store, past, max_result_rows=limit)

    def spark(store: TableStore, progress: Callable[[str], None]) -> StaticExecutor:
        # Imported here: without Spark it need not be installed.
        try:
            from static_engine.spark.spark_executor import SparkExecutor  # noqa: PLC0415
            from static_engine.spark.spark_session import SessionSettings, start_session  # noqa: PLC0415
            from static_engine.spark.spark_workers import SparkWorkers  # noqa: PLC0415
        except ImportError as error:
            raise _not_installed(error) from error
        session = SessionSettings(
            settings.data_path,
            settings.spark_master,
            settings.memory,
            settings.class_data_archive,
            settings.spark_properties,
        )
        running = start_session(session, progress)
        workers.use(SparkWorkers(running))
        executor = SparkExecutor(
            running,
            store,
            past,
            max_result_rows=limit,
            max_view_rows=settings.max_view_rows,
            max_seconds=settings.max_evaluation_seconds,
        )
        if pipeline is None:
            return executor
        pipeline.attach(running)
        return PipedExecutor(executor, pipeline.detach)

    return spark if settings.use_spark else local


def _not_installed(error: ImportError) -> DeploymentError:
    hint = 'pip install "pando[static]", or run with --no-spark'
    return DeploymentError(f"Spark is not installed: {error}", hint=hint)


def lake_service_of(
    settings: StaticSettings,
    epoch: int,
    client: MessageClient,
    lake: Lake | None,
    workers: CurrentWorkers,
) -> LakeService:
    """Return what answers requests about the lake and cares for it."""
    exports = "" if settings.lake is None else settings.lake.exports
    return LakeService(
        client,
        Topics(settings.site),
        settings.site_id,
        epoch,
        lake=lake,
        workers=workers,
        exports=Path(exports).absolute() if exports else settings.data_path / "exports",
        pause=0.0 if settings.lake is None else settings.lake.care_seconds,
    )


async def _until_signalled(settings: StaticSettings) -> None:
    with SiteDirectory(settings.data_path):
        epoch = next_epoch(settings.epoch_path)
        store = store_of(settings)
        limit = settings.max_result_rows
        lake = lake_of(settings)
        past = PastReadings(lake)
        workers = CurrentWorkers(None if settings.use_spark else LocalWorkers())
        bridge = LocalExecutor(store, past, max_result_rows=limit) if settings.use_spark else None
        client = client_of(settings, epoch)
        pipeline = pipeline_of(settings)
        care = lake_service_of(settings, epoch, client, lake, workers)
        if pipeline is not None:
            care.use_pipeline(lambda: pipeline.replay().recovered, pipeline.leave_out)
        engine = StaticEngine(
            settings,
            epoch,
            client,
            store,
            executor_maker(settings, past, workers, pipeline),
            bridge=bridge,
            past=past,
            pieces=None if lake is None else LakePieces(lake),
            pipeline=pipeline,
            lake=care,
        )
        async with serving_status(
            settings.metrics_host,
            settings.metrics_port,
            lambda: static_figures(engine),
            lambda: connection_problem(client),
        ):
            job = asyncio.create_task(engine.run())
            caring = asyncio.create_task(care.run())
            on_stop_signals(job.cancel)
            try:
                with contextlib.suppress(asyncio.CancelledError):
                    await job
            finally:
                caring.cancel()
                await asyncio.gather(caring, return_exceptions=True)


def main() -> int:
    """Return the process's exit status: 0 stopped, 2 something the operator can fix."""
    config = read_command_line("static_engine", __doc__, "JSON settings file")
    os.umask(0o077)  # rows of tables are for nobody else
    try:
        settings = load_settings(config)
        INSTALLED.allow(modules_of(settings.functions))
        asyncio.run(_until_signalled(settings))
    except (FederationError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
