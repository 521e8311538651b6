"""Settings: the only reader of the environment and of the configuration file.

Each key has a name, a default and a reason to exist, and comes from the first of: an argument, `PERDURE_<NAME>`, the
`perdure.toml` named by `PERDURE_CONFIG` or in the user's configuration directory, the default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from perdure.domain.access import ACCESS_MODES, AccessMode
from perdure.domain.context.recall import parse_blend
from perdure.domain.conversation.digests import DEFAULT_PROFILE, Layers, check_profile
from perdure.domain.errors import InvalidInput, Unavailable
from perdure.domain.limits import Limits, Switches
from perdure.domain.oversight import SAVE_MODES, SaveMode
from perdure.domain.text.rules import brief, utf8_size
from perdure.domain.values import dataclass, field, fields, replace

PREFIX = "PERDURE_"
OTHERS = ("config", "bench_data", "rebuild_embedder")
"""Variables of that name which are no settings: where the settings are, and what benchmarks and builds read."""
CHOICES = {
    "durability": ("full", "normal"),
    "week_start": ("monday", "sunday"),
    "lessons_scope": ("", "global", "agent", "user", "channel"),
    "save_results": SAVE_MODES,
    "access_log": ACCESS_MODES,
    "seed": ("", "0", "1", "2", "3", "4"),
}
FILE_ENDINGS = (".db", ".sqlite", ".sqlite3")
"""What tells a file in the working directory from a mistyped URL."""
CATCH_UP_MS_MAX = 60_000
SECRETS = ("embedder_key", "encryption_key", "model_key")
"""Keys whose values are shown nowhere."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set. Times are in seconds."""

    url: str = ""
    """The store: a file such as `agent.db`, `sqlite:///FILE`, `postgresql://…` or `memory:`. Empty: in the data folder."""
    space: str = "default"
    """The application or customer that data belongs to when a call names none."""
    user: str = ""
    """The user the command line acts for when `--user` is not given."""
    durability: str = "full"
    """SQLite: `full` syncs every write; `normal` is faster, but a power cut may take the last writes with it."""
    encryption_key: str = field(default="", repr=False)
    """SQLite: the passphrase that encrypts the file (extra `encryption`). It is shown nowhere. Empty: no encryption."""
    deadline_s: float = 30.0
    """How long one call may wait for the store before it is `Unavailable`."""
    session_idle_s: float = 1800.0
    """More silence than this ends a session; the next message opens a new one."""
    session_resume_s: float = 86_400.0
    """How long after its end a session can be resumed."""
    seed: str = ""
    """The whole behaviour of one of the seed documents, `0` to `4`: its defaults, files and switches. Empty: ours."""
    profile: str = DEFAULT_PROFILE
    """Which summary layers are kept: `task_agent`, `channel_bot`, `companion` or `complete`."""
    tokenizer: str = ""
    """What counts tokens: empty for the built-in estimate, `cl100k`, `o200k`, or the path of a `.tiktoken` file."""
    files_dir: str = ""
    """Where transcripts and lesson books are written as Markdown. Empty: nowhere."""
    transcript_messages_min: int = 3
    """A session with more messages than this has a transcript."""
    zone: str = "UTC"
    """The users' time zone, in which `yesterday` and `next Friday` are meant."""
    week_start: Literal["monday", "sunday"] = "monday"
    """The day on which `this week` begins: `monday` or `sunday`."""
    agents_dir: str = ""
    """The folder of `memory.md` and of `agent-ID/` with `soul.md`, `mood.md`, `skill.md`, `memory.md`. Empty: rows only."""
    lessons_scope: str = ""
    """Whom lessons of compaction reach: `global`, `agent`, `user` or `channel`. Empty: as the set-up suggests."""
    save_results: SaveMode = "manual"
    """What to keep of a tool's result: `manual` (nothing), `suggest` (it is proposed) or `auto` (what lasts is saved)."""
    embedder: str = "static"
    """What compares meaning: `static` (built in), `none`, `onnx:FOLDER`, `openai:URL#MODEL`, `ollama:URL#MODEL`, a plugin."""
    embedder_key: str = field(default="", repr=False)
    """The API key that the embedder's server wants. It goes into a header and is shown nowhere."""
    model: str = ""
    """A chat model that helps: `openai:URL#MODEL` or `ollama:URL#MODEL?num_ctx=8192`. Empty: rules do all of it."""
    model_key: str = field(default="", repr=False)
    """The API key that the model's server wants. It goes into a header and is shown nowhere."""
    extractor: str = ""
    """The plugin that proposes memories from what was said. Empty: the model if there is one, else rules."""
    summariser: str = ""
    """The plugin that writes summaries. Empty: the model if there is one, else rules."""
    reranker: str = ""
    """The plugin that has a last look at what recall has found. Empty: none."""
    recall_blend: str = "off"
    """`off`: recall orders by relevance. `on`: by 40 % relevance, 30 % recency, 30 % frequency; or three other weights."""
    catch_up_ms: int = 50
    """How long a call that reads first learns from what is new, by rules. 0: only a worker learns."""
    index_cache_bytes: int = 0
    """What the search indexes of all users may take in memory. 0: an eighth of the memory."""
    series_max_entries: int = 10_000
    """Entries a new series keeps unless it says otherwise; the oldest are evicted. 0: no bound."""
    postgres_schema: str = "perdure"
    """PostgreSQL: the schema that holds the tables."""
    postgres_pool_max: int = 10
    """PostgreSQL: connections one process may hold."""
    access_log: AccessMode = "off"
    """Whether calls are logged, with who made them and the ids of what they touched: `off`, `changes` or `all`."""
    layers: Layers = field(default_factory=Layers)
    """When the summary layers act and how long they may be: each is a key of its own."""
    limits: Limits = field(default_factory=Limits)
    """What one call may carry and what may wait: each is a key of its own."""
    switches: Switches = field(default_factory=Switches)
    """Single behaviours of the seed documents, for comparison."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", _url(self.url))
        _check_kinds(self)
        _sow(self)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                shown = ", ".join(choice or "empty" for choice in choices)
                raise InvalidInput(f"setting `{name}` = {brief(getattr(self, name))} is unknown; use one of {shown}")
        check_profile(self.profile)
        for name in ("deadline_s", "session_idle_s", "session_resume_s"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 10**9:
                raise InvalidInput(f"setting `{name}` = {brief(value)} must be more than 0 seconds")
        _check_zone(self.zone)
        parse_blend(self.recall_blend)
        if self.transcript_messages_min < 0:
            raise InvalidInput(f"setting `transcript_messages_min` = {brief(self.transcript_messages_min)} must be 0 or more")
        if not 0 <= self.catch_up_ms <= CATCH_UP_MS_MAX:
            raise InvalidInput(
                f"setting `catch_up_ms` = {brief(self.catch_up_ms)} must be 0 (only a worker learns) to {CATCH_UP_MS_MAX}"
            )
        if self.index_cache_bytes < 0:
            raise InvalidInput(
                f"setting `index_cache_bytes` = {brief(self.index_cache_bytes)} must be 0 (an eighth of the memory) or more"
            )
        if self.series_max_entries < 0:
            raise InvalidInput(f"setting `series_max_entries` = {brief(self.series_max_entries)} must be 0 (no bound) or more")
        if self.postgres_pool_max < 1:
            raise InvalidInput(f"setting `postgres_pool_max` = {brief(self.postgres_pool_max)} must be at least 1")
        # PostgreSQL cuts names at 63 bytes; verification needs a few of them for a schema to compare with.
        if not self.postgres_schema.isidentifier() or len(self.postgres_schema.encode()) > 57:
            raise InvalidInput(
                f"setting `postgres_schema` = {brief(self.postgres_schema, 60)} must be an identifier of at most 57 bytes"
            )


def _url(store: object) -> object:
    """The URL of a store that is given as the path of its file; anything else as it is."""
    if isinstance(store, os.PathLike):
        path = os.fspath(store)
    elif isinstance(store, str) and ":" not in store and ({"/", "\\"} & set(store) or store.endswith(FILE_ENDINGS)):
        path = store
    else:
        return store
    from urllib.parse import quote

    try:
        return f"sqlite:///{quote(path)}" if isinstance(path, str) and "\0" not in path else path
    except UnicodeEncodeError:  # a lone surrogate, which is refused by name as in any other setting
        return path


def _check_kinds(settings: Settings) -> None:
    """Each value is of the kind its default is."""
    for one in fields(Settings):
        value = getattr(settings, one.name)
        if one.name in GROUPS:
            if not isinstance(value, GROUPS[one.name]):
                raise InvalidInput(f"setting `{one.name}` must be `perdure.{GROUPS[one.name].__name__}`, not {brief(value)}")
        elif isinstance(one.default, str):
            utf8_size(value, f"setting `{one.name}`")
        elif isinstance(one.default, int) and (isinstance(value, bool) or not isinstance(value, int)):
            raise InvalidInput(f"setting `{one.name}` = {brief(value)} must be a whole number")


def _check_zone(zone: str) -> None:
    from perdure.domain.times.instants import zone_named

    try:
        zone_named(zone)
    except InvalidInput:
        raise InvalidInput(f"setting `zone` = {brief(zone, 60)} is no time zone; use a name such as Europe/Berlin") from None


@dataclass(frozen=True, slots=True)
class Setting:
    """One key as it stands: its value and where that came from."""

    name: str
    value: object
    source: str

    @property
    def display(self) -> object:
        """The value as it may be shown: of a secret, only that there is one."""
        return "(set)" if self.name in SECRETS and self.value else self.value


def load(environ: Mapping[str, str] | None = None, **given: object) -> Settings:
    """Settings from all sources; `given` wins where it is not None."""
    return build({setting.name: setting.value for setting in listing(environ, **given)})


def listing(environ: Mapping[str, str] | None = None, **given: object) -> list[Setting]:
    """Every key with its value and source, in the order of definition."""
    env = os.environ if environ is None else environ
    path = config_path(env)
    file = _read_file(path)
    _refuse_unknown(env, file, path)
    found = []
    for name, default in defaults().items():
        if given.get(name) is not None:
            found.append(Setting(name, given[name], "argument"))
        elif (variable := PREFIX + name.upper()) in env:
            found.append(Setting(name, _cast(env[variable], default, variable), variable))
        elif name in file:
            if name in SECRETS and not isinstance(file[name], str):
                raise InvalidInput(f"{path}: {name} must be a text in quotes; correct it")  # its value is not quoted
            found.append(Setting(name, _cast(file[name], default, f"{path}: {name}"), str(path)))
        else:
            found.append(Setting(name, default, "default"))
        if name == "encryption_key" and not found[-1].value and found[-1].source != "default":
            # A variable that was to hold the key and is empty would make a store that anybody can read.
            raise InvalidInput(
                f"`encryption_key` ({found[-1].source}) is empty; give the key, or leave it out for a plain store"
            )
    return _sown(found)


def _sown(found: list[Setting]) -> list[Setting]:
    """The same, with what the seed says of keys that nobody set."""
    seed = next(one.value for one in found if one.name == "seed")
    if seed not in SEEDS:
        return found
    chosen = Settings(seed=str(seed))
    return [
        replace(one, value=getattr(chosen, one.name), source=f"seed {seed}")
        if one.source == "default" and getattr(chosen, one.name, one.value) != one.value
        else one
        for one in found
    ]


SEEDS: Mapping[str, Mapping[str, Any]] = {
    "0": {"switches": Switches(relevance="keyword_gate", coverage="seed_span")},
    "1": {"save_results": "manual"},
    "2": {"profile": "task_agent"},
    "3": {
        "profile": "companion",
        "recall_blend": "on",
        "switches": Switches(
            rolling_scope="persona",
            spine_unit="messages",
            statements="replace",
            importance_growth=False,
            attributes=False,
        ),
    },
    "4": {
        "profile": "channel_bot",
        "lessons_scope": "global",
        "switches": Switches(clear_small=False, lessons="all", transcript="new_each_time"),
    },
}
"""What each seed document asks for where we do otherwise. A key that was set to something else keeps that."""
SEED_FOLDERS = {"4": {"agents_dir": "agents", "files_dir": "session"}}
"""Folders in the user's data folder that a seed keeps files in: `agents/memory.md`, and transcripts."""


def _sow(settings: Settings) -> None:
    """Give keys that are as they were the values of the seed."""
    if settings.seed not in SEEDS:
        return
    values = dict(SEEDS[settings.seed])
    if folders := SEED_FOLDERS.get(settings.seed):
        from platformdirs import user_data_path

        values |= {name: str(user_data_path("perdure", appauthor=False) / folder) for name, folder in folders.items()}
    standard = {one.name: one.default_factory() if callable(one.default_factory) else one.default for one in fields(Settings)}
    for name, value in values.items():
        if getattr(settings, name) == standard[name]:
            object.__setattr__(settings, name, value)


GROUPS = {"layers": Layers, "limits": Limits, "switches": Switches}
"""Keys that stand beside the others but are handed on together."""
PYTHON_ONLY = frozenset(
    {"metadata_bytes_max", "batch_messages_max", "entry_bytes_max", "batch_entries_max", "import_bytes_max"}
    | {"window_messages", "rolling_turns", "spine_turns", "rolling_chars_max", "flush_messages_min", "accesses_kept"}
    | {"history_messages_keep", "fold_words_max", "spine_chars_max", "summary_tokens_max", "flush_inactive_s"}
    | {"state_revisions_max"}
    | {one.name for one in fields(Switches)}
)
"""Fields of the groups that hosts set in Python if ever: anyone who needs another value has code of their own anyway."""


def defaults() -> dict[str, Any]:
    """Every key with its default; those of the groups stand beside the others."""
    standard = Settings()
    keys = {one.name: getattr(standard, one.name) for one in fields(Settings) if one.name not in GROUPS}
    for name, group in GROUPS.items():
        keys |= {one.name: getattr(getattr(standard, name), one.name) for one in fields(group) if one.name not in PYTHON_ONLY}
    return keys


def build(values: Mapping[str, Any]) -> Settings:
    grouped: dict[str, Any] = {}
    left = dict(values)
    for name, group in GROUPS.items():
        given = {one.name: left.pop(one.name) for one in fields(group) if one.name in left}
        grouped[name] = group(**given)
    return Settings(**grouped, **left)


def default_store_path() -> Path:
    """The SQLite file used when nothing names a store."""
    from platformdirs import user_data_path

    try:
        return user_data_path("perdure", appauthor=False, ensure_exists=True) / "perdure.db"
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise Unavailable(f"the data folder cannot be made ({reason}); fix that, or name a store with `PERDURE_URL`") from error


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """The file that settings are read from; in the default place it need not exist."""
    env = os.environ if environ is None else environ
    if named := env.get(PREFIX + "CONFIG"):
        path = Path(named)
        if not path.is_file():
            raise InvalidInput(f"`{PREFIX}CONFIG` = {named!r:.200} is not a file; create it or unset the variable")
        return path
    from platformdirs import user_config_path

    return user_config_path("perdure", appauthor=False) / "perdure.toml"


FILE_BYTES_MAX = 32 * 1024
"""Python's reader of TOML takes the square of the length of a key with many dots."""


def _read_file(path: Path) -> Mapping[str, Any]:
    import tomllib  # not loaded by those who pass settings in

    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
        if len(raw) > FILE_BYTES_MAX:
            raise InvalidInput(f"{path} has more than {FILE_BYTES_MAX} bytes, which no settings need; fix or remove it")
        return tomllib.loads(raw.decode().replace("\r\n", "\n"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML ({error}); fix or remove it") from error


def _refuse_unknown(env: Mapping[str, str], file: Mapping[str, Any], path: Path) -> None:
    known = defaults().keys()
    for name in file:
        if name not in known:
            raise InvalidInput(f"{path} sets `{name}`, which is no setting; use one of {', '.join(known)}")
    for variable in env:
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name not in OTHERS and name not in known:
            raise InvalidInput(
                f"the environment sets `{variable}`, which is no setting; `perdure admin config list` lists them"
            )


def _cast(value: Any, default: object, where: str) -> object:
    """`value` in the type of the default."""
    try:
        if isinstance(default, str) and isinstance(value, str):
            return value
        if isinstance(default, int | float) and isinstance(value, str | int | float) and not isinstance(value, bool):
            return type(default)(value)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(f"{where} = {brief(value, 60)} cannot be read as {type(default).__name__}; correct it")
