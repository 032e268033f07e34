"""Settings: a file, and the environment above it."""

from pathlib import Path

import pytest

from federated_optimizer.sharing.strategy import Materialize, Strategy
from streamsql.algebra.metrics import BY_BYTES, Term
from streamsql.errors import DeploymentError
from ui.console_settings import load_settings


def write(folder: Path, text: str) -> Path:
    path = folder / "console.json"
    path.write_text(text)
    return path


def test_a_file_fills_in_what_it_names(tmp_path: Path) -> None:
    path = write(tmp_path, '{"broker": "mqtt://b:1", "data_dir": "d", "port": 99}')
    settings = load_settings(path, {})
    assert (settings.broker, settings.port, settings.host) == ("mqtt://b:1", 99, "127.0.0.1")


def test_the_environment_wins_where_it_says_something(tmp_path: Path) -> None:
    path = write(tmp_path, '{"broker": "mqtt://b:1", "data_dir": "d"}')
    settings = load_settings(path, {"PANDO_BROKER": "mqtt://c:2", "PANDO_SITE": ""})
    assert (settings.broker, settings.site) == ("mqtt://c:2", "demo")


@pytest.mark.parametrize("text", ["", "[]", '{"broker": 3, "data_dir": "d"}', '{"data_dir": "d"}'])
def test_wrong_files_are_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(DeploymentError, match=r"console\.json"):
        load_settings(write(tmp_path, text), {})


def test_the_ways_of_sharing_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path, '{"broker": "mqtt://b:1", "data_dir": "d", "sharing": "match plan"}')
    found = load_settings(path, {"PANDO_MATERIALIZE": "eager"})
    assert (found.sharing, found.materialize) == (Strategy.MATCH_PLAN, Materialize.EAGER)
    assert load_settings(path, {"PANDO_SHARING": "all"}).sharing == Strategy.ALL
    with pytest.raises(DeploymentError, match="sharing"):
        load_settings(path, {"PANDO_SHARING": "some"})


def test_the_metric_of_plans_is_checked(tmp_path: Path) -> None:
    path = write(tmp_path, '{"broker": "mqtt://b:1", "data_dir": "d"}')
    assert load_settings(path, {}).plan_metric == BY_BYTES
    assert load_settings(path, {}).heuristics
    assert not load_settings(path, {"PANDO_HEURISTICS": "false"}).heuristics
    mixed = load_settings(path, {"PANDO_METRIC": "bytes 1, latency 2"}).plan_metric
    assert mixed.weights == ((Term.BYTES, 1.0), (Term.LATENCY, 2.0))
    with pytest.raises(DeploymentError, match="setting metric: 'speed' is no term") as caught:
        _ = load_settings(path, {"PANDO_METRIC": "speed"}).plan_metric
    assert "bytes, messages, latency" in (caught.value.hint or "")
