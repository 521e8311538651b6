from __future__ import annotations

from pathlib import Path

import pytest

import perdure
from perdure import InvalidInput, Limits, Settings
from perdure.compose.store import target
from perdure.settings import defaults, listing, load

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def no_config_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_arguments_beat_the_environment_beats_the_file_beats_the_default(tmp_path: Path) -> None:
    file = tmp_path / "perdure.toml"
    file.write_text('space = "file"\nuser = "file"\nqueue_jobs_max = 7\ndeadline_s = 3\n')
    env = {"PERDURE_CONFIG": str(file), "PERDURE_USER": "env", "PERDURE_SESSION_IDLE_S": "60", "HOME": "/x"}
    settings = load(env, url="memory:")
    assert settings == Settings(
        url="memory:", space="file", user="env", session_idle_s=60.0, deadline_s=3.0, limits=Limits(queue_jobs_max=7)
    )
    sources = {setting.name: setting.source for setting in listing(env, url="memory:")}
    assert sources["url"] == "argument"
    assert sources["user"] == "PERDURE_USER"
    assert sources["space"] == str(file)
    assert sources["durability"] == "default"


@pytest.mark.parametrize(
    "env",
    [
        {"PERDURE_COLOUR": "blue"},
        {"PERDURE_DEADLINE_S": "soon"},
        {"PERDURE_DURABILITY": "some"},
        {"PERDURE_DEADLINE_S": "-1"},
        {"PERDURE_POSTGRES_SCHEMA": "a b"},
        {"PERDURE_POSTGRES_POOL_MAX": "0"},
        {"PERDURE_QUEUE_JOBS_MAX": "0"},
        {"PERDURE_BATCH_MESSAGES_MAX": "5"},
        {"PERDURE_WEEK_START": "tuesday"},
        {"PERDURE_CONFIG": "/no/such/file"},
        {"PERDURE_DEADLINE_S": "nan"},
    ],
)
def test_a_wrong_setting_is_refused_by_name(env: dict[str, str]) -> None:
    [name] = env
    with pytest.raises(InvalidInput, match=rf"(?i){name}|{name.removeprefix('PERDURE_')}"):
        load(env)


@pytest.mark.parametrize("text", ["colour = 1", "space = 1", "not toml", "queue_jobs_max = true"])
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "perdure.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=r"perdure\.toml"):
        load({"PERDURE_CONFIG": str(file)})


def test_a_file_larger_than_any_settings_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "perdure.toml"
    file.write_text('space = "a"\n' + "#" * 32_768)
    with pytest.raises(InvalidInput, match="more than 32768 bytes"):
        load({"PERDURE_CONFIG": str(file)})


def test_there_are_at_most_forty_keys_and_each_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert len(defaults()) <= 40
    assert [name for name in defaults() if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("url", "kind", "path"),
    [
        ("memory:", "memory", ""),
        ("sqlite:///agent.db", "sqlite", "agent.db"),
        ("sqlite:////var/a%20b.db", "sqlite", "/var/a b.db"),
        ("sqlite:///C:/x.db", "sqlite", "C:/x.db"),
        ("postgresql://h/db", "postgres", ""),
        ("postgres://h/db", "postgres", ""),
    ],
)
def test_urls_name_a_store(url: str, kind: str, path: str) -> None:
    assert (target(url).kind, target(url).path) == (kind, path)


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite://host/x.db", "mysql://h/db", "agent", "a\0.db", "sqlite:///x.db?mode=ro", "x"]
)
def test_a_url_nobody_can_open_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(InvalidInput):
        perdure.open(url)
    with pytest.raises(InvalidInput) as caught:
        perdure.open("mysql://root:hunter2@db/x")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("agent.db", "agent.db"),
        ("some where/50%?#.db", "some where/50%?#.db"),
        ("/srv/agent", "/srv/agent"),
        (Path("agent"), "agent"),
    ],
)
def test_the_path_of_a_file_names_a_store(given: str | Path, path: str) -> None:
    found = target(Settings(url=given).url)  # type: ignore[arg-type] # a `Path`, as `perdure.open` takes it
    assert (found.kind, found.path) == ("sqlite", path)


@pytest.mark.parametrize("path", ["some/where\udfff", "a\udc80.db", Path("some/where\udfff")])
def test_a_path_that_is_no_text_is_refused_by_name(path: str | Path) -> None:
    with pytest.raises(InvalidInput, match="setting `url` contains a lone surrogate"):
        perdure.open(path)


def test_a_store_is_opened_by_the_path_of_its_file(tmp_path: Path) -> None:
    with perdure.open(tmp_path / "a b.db") as engine:
        engine.memory(user="ana").append("user", "hello")
    with perdure.open(str(tmp_path / "a b.db")) as engine:
        assert [one.content for one in engine.memory(user="ana").messages()] == ["hello"]


def test_without_a_url_the_store_is_in_the_users_data_directory(tmp_path: Path) -> None:
    with perdure.open() as engine:
        [first, *_] = engine.files()
        assert first.path == tmp_path / "data" / "perdure" / "perdure.db"


def test_url_and_settings_together_are_refused() -> None:
    with pytest.raises(InvalidInput, match="both"):
        perdure.open("memory:", settings=Settings())
