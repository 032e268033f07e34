"""Start Spark's JVM directly; it ends with this process.

PySpark would start `bin/spark-submit`. We start the JVM ourselves and hand PySpark the gateway's
port (its own `PYSPARK_GATEWAY_PORT` path), because

* the script asks for the module `jdk.incubator.vector`, which packaged Java runtimes lack, and the
  JVM would die; only a linear algebra library wants it, and has a fall-back;
* the script's class path defeats archives of loaded classes, which halve the start's CPU time;
* it costs a shell and one more JVM.

The JVM reads its standard input and exits at its end, so it goes when this process goes, however
that happens: the kernel closes the pipe even after SIGKILL. A shell that waits for the same end
kills it if it is not gone some seconds later: writing the archive may take minutes.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pyspark

from static_engine.spark.java import JavaRuntime, find_java
from streamsql.errors import DeploymentError

_START_SECONDS = 180.0
_STOP_SECONDS = 60.0
ARCHIVE_SECONDS = 180.0
"""Max time to write the class archive: usually ten seconds, more on busy cores."""
EXIT_SECONDS = 20.0
"""Max time for the JVM to exit after this process, an archive included."""
MAX_LOG_BYTES = 5_000_000
_REGULAR = (0, 128 + signal.SIGTERM)
"""Exit statuses of a JVM that has ended by itself, or been asked to."""
# The shell becomes the JVM, so the process id is the JVM's. Its child waits for the end of the
# input, and kills its parent if that is still the JVM.
_FOLLOWED = """
seconds=$1; shift
exec 3<&0
(
  cat <&3 >/dev/null
  sleep "$seconds"
  [ -r /proc/self/stat ] && read -r _ _ _ parent _ </proc/self/stat
  [ "$parent" = $$ ] && kill -9 $$
) 2>/dev/null &
exec "$@" 3<&-
"""
_OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)


class SparkStartError(DeploymentError):
    """Spark's JVM did not come up."""

    code = "spark_start"


@dataclass(frozen=True, slots=True)
class JvmSettings:
    """Settings of the JVM.

    Attributes:
        data_dir: Folder for the log, scratch files and the class archive.
        memory: Heap limit, e.g. "1g".
        configuration: Spark's properties.
        archive: Whether to make and use an archive of loaded classes.
    """

    data_dir: Path
    memory: str
    configuration: Mapping[str, str]
    archive: bool = True


class SparkJvm:
    """A running JVM with PySpark's gateway in it.

    Attributes:
        port: The gateway's TCP port on loopback.
        secret: What a client must present.
        java: The Java it runs on.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], java: JavaRuntime, fresh: tuple[Path, Path] | None
    ) -> None:
        self._process = process
        self._fresh = fresh
        self.java = java
        self.port = 0
        self.secret = ""

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once; `stop` still has to be called."""
        self._process.kill()

    def stop(self, *, timeout: float = _STOP_SECONDS, patience: float = ARCHIVE_SECONDS) -> None:
        """End it and keep the class archive it writes on its first regular exit.

        Args:
            timeout: Seconds until it is killed.
            patience: Seconds to wait for the archive; after them the JVM, which is on its way out,
                is left `EXIT_SECONDS` to finish it, and the next start takes it over.
        """
        writing = self._fresh is not None
        self._process.terminate()  # the end of its input would leave it EXIT_SECONDS only
        try:
            code = self._process.wait(patience if writing else timeout)
        except subprocess.TimeoutExpired:
            if writing and patience < timeout:
                self._close_input()
                return
            self._process.kill()
            code = self._process.wait()
        self._close_input()
        if self._fresh is None:
            return
        written, final = self._fresh
        if code in _REGULAR and written.exists():
            written.replace(final)
        written.unlink(missing_ok=True)

    def _close_input(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()


def start_jvm(settings: JvmSettings, progress: Callable[[str], None]) -> SparkJvm:
    """Start the JVM and wait for its gateway.

    Args:
        settings: See `JvmSettings`.
        progress: Receives what is being done, in a few words.

    Raises:
        NoJavaError: There is no usable Java.
        SparkStartError: The JVM ended or was not ready in time; the text has the end of its log.
    """
    progress("finding Java")
    java = find_java()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    options, fresh = _archive_options(settings, java)
    progress(f"starting the JVM (Java {java.version})")
    exchange = Path(tempfile.mkdtemp(prefix="pando-spark-"))
    try:
        process = _launch(settings, java, options, exchange / "gateway")
        jvm = SparkJvm(process, java, fresh)
        try:
            jvm.port, jvm.secret = _await_gateway(jvm, exchange / "gateway", settings.data_dir)
        except BaseException:
            process.kill()
            jvm.stop()
            raise
    finally:
        shutil.rmtree(exchange, ignore_errors=True)
    return jvm


def spark_home() -> Path:
    """Return the folder of Spark's own files inside the PySpark package."""
    return Path(pyspark.__file__).parent


def log_path(data_dir: Path) -> Path:
    """Return the JVM's log."""
    return data_dir / "spark-jvm.log"


def archive_name(java: JavaRuntime) -> str:
    """Return the name of the class archive: one for each Java with each Spark."""
    mark = f"{java.executable}\0{java.build}\0{pyspark.__version__}\0{spark_home()}"
    return f"spark-classes-{hashlib.sha256(mark.encode()).hexdigest()[:16]}.jsa"


def _launch(
    settings: JvmSettings, java: JavaRuntime, options: list[str], gateway: Path
) -> subprocess.Popen[bytes]:
    command = [str(java.executable), f"-Xmx{settings.memory}", "-XX:+IgnoreUnrecognizedVMOptions"]
    command.append("-XX:+ExitOnOutOfMemoryError")  # half a Spark is worse than a new one
    command += options
    command += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    if java.version >= 22:
        command.append("--enable-native-access=ALL-UNNAMED")
    command += [
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
        "-cp",
        str(spark_home() / "jars" / "*"),
        "org.apache.spark.deploy.SparkSubmit",
    ]
    for name, value in settings.configuration.items():
        command += ["--conf", f"{name}={value}"]
    environment = {
        **os.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(gateway),
        "SPARK_HOME": str(spark_home()),
    }
    with _opened_log(settings.data_dir) as log:
        return subprocess.Popen(  # noqa: S603 - the Java that was just found
            ["/bin/sh", "-c", _FOLLOWED, "spark", f"{EXIT_SECONDS:g}", *command, "pyspark-shell"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,  # Ctrl-C is ours to handle; the JVM follows its input
        )


def _opened_log(data_dir: Path) -> IO[bytes]:
    """Open the log for appending; a log that is too long becomes `.1`."""
    path = log_path(data_dir)
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
    log = path.open("ab")
    log.write(f"--- {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} Spark's JVM starts\n".encode())
    log.flush()
    return log


def _await_gateway(jvm: SparkJvm, gateway: Path, data_dir: Path) -> tuple[int, str]:
    deadline = time.monotonic() + _START_SECONDS
    while not gateway.is_file():  # it is renamed into place when complete
        if not jvm.alive() or time.monotonic() > deadline:
            late = f"was not ready after {_START_SECONDS:.0f} s" if jvm.alive() else "ended"
            log, tail = log_path(data_dir), ""
            with contextlib.suppress(OSError):
                tail = log.read_text(errors="replace")[-600:].strip()
            raise SparkStartError(
                f"Spark's JVM {late}: {tail or 'it wrote nothing'}",
                hint=f"see {log}; check that there is memory for -Xmx and that processes may "
                "listen on loopback",
            )
        time.sleep(0.02)
    content = gateway.read_bytes()
    port, length = struct.unpack(">ii", content[:8])
    return port, content[8 : 8 + length].decode()


def _archive_options(
    settings: JvmSettings, java: JavaRuntime
) -> tuple[list[str], tuple[Path, Path] | None]:
    """Return the options that use or make a class archive, and where a new one is written to.

    A new archive goes to a name of its own and is renamed after a regular exit. When this process
    is killed the JVM still writes it while exiting; the next start adopts it if it is complete.
    """
    if not settings.archive:
        return [], None
    final = settings.data_dir / archive_name(java)
    quiet = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xshare:auto"]
    _adopt(final)
    if final.exists():
        return [f"-XX:SharedArchiveFile={final}", *quiet], None
    for other in settings.data_dir.glob("spark-classes-*"):
        other.unlink(missing_ok=True)  # of another Java or Spark, or left half-written
    written = final.with_name(f"{final.name}.{os.getpid()}")
    return [f"-XX:ArchiveClassesAtExit={written}", *quiet], (written, final)


def _adopt(final: Path) -> None:
    """Take over an archive that a JVM finished after its parent was killed.

    The JVM writes the header last, so a file that starts with zeros is incomplete.
    """
    for written in final.parent.glob(f"{final.name}.*"):
        with written.open("rb") as file:
            complete = any(file.read(4))
        if complete:
            written.replace(final)
