"""`pando up`, `gateway restart` and `bench`: what is refused before anything starts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deploy.cli.main import app
from deploy.local.up_options import UpOptions


def pando(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--gateways", "0"), "--gateways 0"),
        (("--gateways", "many"), "--gateways"),
        (("--port", "70000"), "--port 70000"),
        (("--speed", "0"), "--speed 0.0"),
        (("--site", "none.geojson"), "--site none.geojson: there is no such file"),
        (("--replay", "none.k7"), "--replay none.k7: there is no such file"),
        (("--calendar", "none.ics"), "--calendar none.ics: there is no such file"),
        (("--allow-host", "http://a"), "--allow-host 'http://a'"),
        (("--nonsense",), "No such option"),
    ],
)
def test_wrong_options_are_the_users_error(
    tmp_path: Path, form: str, options: tuple[str, ...], said: str
) -> None:
    data = tmp_path / "data"
    done = pando("up", "--data", str(data), "--format", form, *options)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert not data.exists()


def test_a_format_that_is_none(tmp_path: Path) -> None:
    done = pando("up", "--data", str(tmp_path / "data"), "--format", "csv")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "use table, json" in done.stderr


def test_options_reach_the_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[UpOptions] = []

    async def up(options: UpOptions, _reporter: object) -> int:
        given.append(options)
        return 1

    monkeypatch.setattr("deploy.local.supervisor.up", up)
    recording = tmp_path / "r.csv"
    recording.write_text("ts,a\n1,2\n")
    texts = f"--replay {recording} --speed 600 --broker embedded --gateways 5 --port 9000"
    done = pando(
        "up", *texts.split(), "--data", str(tmp_path / "d"), "--no-spark", "--allow-host", "a.b"
    )
    assert done.exit_code == 1
    assert given == [
        UpOptions(
            replay=recording,
            speed=600.0,
            broker="embedded",
            gateways=5,
            port=9000,
            data=tmp_path / "d",
            spark=False,
            allow_hosts=("a.b",),
        )
    ]


def test_a_restart_without_a_federation(tmp_path: Path) -> None:
    done = pando("gateway", "restart", "gw-1", "--data", str(tmp_path))
    assert done.exit_code == 2
    assert f"no federation runs on data directory {tmp_path}" in done.stderr
    assert done.stdout == ""


def test_benchmarks_are_listed_and_unknown_ones_refused(
    capfd: pytest.CaptureFixture[str],
) -> None:
    listed = pando("bench", "list")
    assert listed.exit_code == 0
    assert "end_to_end" in listed.stdout.split()
    unknown = pando("bench", "nonsense")
    assert unknown.exit_code == 2
    assert "there is no benchmark 'nonsense'" in unknown.stderr
    assert capfd.readouterr().out == ""


def test_help_behind_a_benchmark_is_that_benchmarks(capfd: pytest.CaptureFixture[str]) -> None:
    done = pando("bench", "recursive_soak", "--help")
    assert done.exit_code == 0
    shown = capfd.readouterr().out
    assert "usage: recursive_soak.py" in shown
    assert "--updates" in shown
    refused = pando("bench", "recursive_soak", "--nonsense")
    assert refused.exit_code == 2
    assert "unrecognized arguments: --nonsense" in capfd.readouterr().err


def test_without_a_benchmark_help_lists_the_command() -> None:
    asked, bare = pando("bench", "--help"), pando("bench")
    assert (asked.exit_code, bare.exit_code) == (0, 2)
    for done in (asked, bare):
        assert "Run a benchmark next to its baselines" in done.stdout
