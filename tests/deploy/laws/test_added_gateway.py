"""`add_gateway.sh`: a fourth gateway by one command, with a `docker` that runs things here.

Nothing of it needs Docker but the containers: the script, the console, the broker and the gateway
are the real ones. What is not seen here is that the images hold what the commands need, which
test_images.py checks for every service.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from tests.deploy.compose_file import COMPOSE, ON_DEMAND, ROOT
from tests.end_to_end.fleet import SecuredFederation, secured_federation, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.end_to_end]

SCRIPT = ROOT / "deploy" / "containers" / "add_gateway.sh"
DOCKER = """\
#!/bin/sh
# A docker for this test: services are processes here, containers a list in a file.
echo "$*" >> "$CALLS"
[ "$1" = update ] && exit 0
[ "$1" = compose ] || { echo "unexpected: $*" >&2; exit 9; }
shift
verb=$1; shift
detached= name=
while true; do
  case $1 in
    -T | --rm) shift ;;
    -d) detached=1; shift ;;
    -e) export "$2"; shift 2 ;;
    --name) name=$2; shift 2 ;;
    *) break ;;
  esac
done
service=$1; shift
echo "$verb $service" >> "$SERVICES"
for word in "$@"; do
  shift
  case $word in
    http://127.0.0.1:8080) word=$CONSOLE ;;
    /var/lib/pando/*) word=$LIB/${word#/var/lib/pando/} ;;
  esac
  set -- "$@" "$word"
done
[ "$1" = python ] && { shift; set -- "$PYTHON" "$@"; }
cd "$ROOT"
if [ -n "$detached" ]; then
  "$@" > "$LIB/$name.log" 2>&1 &
  echo $! > "$LIB/$name.pid"
else
  exec "$@"
fi
"""


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredFederation]:
    with secured_federation(tmp_path_factory.mktemp("fleet"), "embedded") as running:
        yield running


def add(federation: SecuredFederation, name: str) -> "subprocess.CompletedProcess[str]":
    """Run the script with our docker."""
    folder = federation.folder
    docker = folder / "bin" / "docker"
    docker.parent.mkdir(exist_ok=True)
    docker.write_text(DOCKER, encoding="utf-8")
    docker.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{docker.parent}:{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "ROOT": str(ROOT),
        "CALLS": str(folder / "calls"),
        "SERVICES": str(folder / "services"),
        "CONSOLE": federation.address,
        "LIB": str(folder),
        "PANDO_CA": str(federation.ca),
    }
    return subprocess.run(
        ["sh", str(SCRIPT), name],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_fourth_gateway_is_one_command(federation: SecuredFederation) -> None:
    done = add(federation, "gw-4")
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "gw-4 runs as container pando-gw-4" in done.stdout
        wait_until(lambda: federation.is_live("gw-4"), "gw-4 is live")
        assert federation.enrolment("gw-4")["state"] == "joined"
    finally:
        pid = federation.folder / "pando-gw-4.pid"
        if pid.exists():
            process = psutil.Process(int(pid.read_text()))
            process.terminate()
            process.wait(60)
    used = (federation.folder / "services").read_text().splitlines()
    assert used == ["exec coordinator", "run join", "run gateway"]
    assert {line.split()[1] for line in used} <= set(COMPOSE["services"])
    assert "update --restart unless-stopped pando-gw-4" in (federation.folder / "calls").read_text()


@pytest.mark.parametrize("name", ["", "a b", "../x", "$(id)"])
def test_a_name_that_is_none_is_refused(federation: SecuredFederation, name: str) -> None:
    done = add(federation, name)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def test_what_the_console_refuses_ends_it(federation: SecuredFederation) -> None:
    done = add(federation, "base")
    assert done.returncode != 0
    assert "the name base is taken" in done.stderr
    assert "run join" not in (federation.folder / "services").read_text().splitlines()[-1]


def test_services_for_more_gateways_start_by_themselves_never() -> None:
    assert set(ON_DEMAND) == {"join", "gateway"}
    assert ON_DEMAND["join"]["network_mode"] == "service:coordinator", "the token is in clear there"
    volumes = {name: service["volumes"] for name, service in ON_DEMAND.items()}
    assert volumes["join"] == volumes["gateway"], "credentials are where the gateway looks"
    assert "environment" not in ON_DEMAND["gateway"], "its settings say all"
