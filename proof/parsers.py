"""Everything that reads text or bytes from outside, with sound samples to spoil: exports, notes, transcripts, documents, books,
times, settings, URLs, names, vocabularies, and what models answer."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import perdure
from perdure import settings
from perdure.adapters.models.tokens import token_counter
from perdure.adapters.wire import check_address
from perdure.compose.store import target
from perdure.domain.context.recall import parse_blend
from perdure.domain.conversation import addresses
from perdure.domain.knowledge import keys as entities
from perdure.domain.knowledge.proposals import EntityName, ExtractionRequest
from perdure.domain.text.rules import has_more_parts
from perdure.domain.times.instants import instant_us, zone_named
from perdure.engine import lessons, portability
from perdure.engine.conversation import transcript as transcripts
from perdure.engine.conversation.jobs import is_repeat, next_slot
from perdure.engine.documents import json_form
from perdure.engine.knowledge import audit as auditing
from perdure.engine.models import answers, replies
from perdure.engine.models.answers import EXTRACTION
from perdure.engine.search import lexicon
from perdure.engine.search.question import understand
from perdure.engine.text import sentences
from perdure.engine.times import mentions
from perdure.engine.times.question import extract_time_range
from perdure.interfaces.mcp import wire
from perdure.interfaces.serving.options import host_of
from perdure.services.portability.vault_folder import read_note
from proof.hostile import Hostile
from proof.surface import DOCUMENT, NOW


@dataclass(frozen=True)
class Parser:
    """Something that reads, and sound examples of what it reads."""

    name: str
    read: Callable[[Any], Any]
    samples: tuple[Any, ...]
    weight: int = 10
    trusted: bool = False
    """It is only ever given text that was let in: no NUL, no lone surrogates."""
    takes_anything: bool = False
    """Also values that are no text."""
    own: bool = False
    """It reads what we wrote: what was altered is `Corrupt`, and rightly so."""


TIMES = (
    "what did I do last tuesday evening",
    "between 3 May and 2024-06-01",
    "in the summer of 2019",
    "two weeks ago",
    "next friday at 5pm",
    "letzten Montag",
    "hace dos semanas",
    "every day since Easter 2020",
    "at 09:30 on 31/12/1999",
    "from 2020 to 2022",
    "the day before yesterday",
    "Q3 2023",
)
FOLD = json.dumps({"summary": "They talked.", "lessons": ["Ask first."], "decisions": ["Go"], "open": ["When?"]})
EXTRACTED = json.dumps(
    {
        "proposals": [
            {
                "n": 1,
                "type": "PROFILE",
                "fact_type": "fact",
                "content": "Lives in Seattle",
                "quote": "I moved to Seattle",
                "entities": [{"type": "place", "label": "Seattle"}],
                "attribute": "home",
                "value": "Seattle",
                "confidence": 0.9,
                "importance": 2,
            }
        ],
        "todos": [{"n": 1, "kind": "commitment", "content": "call John", "quote": "call John", "due": "tomorrow"}],
    }
)
MEM0 = json.dumps(
    {
        "results": [
            {"id": "1", "memory": "Lives in Oslo", "user_id": "ana", "created_at": "2024-05-01T00:00:00Z", "metadata": {"a": 1}}
        ]
    }
)
MCP_GRAPH = "\n".join(
    [
        json.dumps({"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea", "works at Acme"]}),
        json.dumps({"type": "relation", "from": "Ann", "to": "Acme", "relationType": "works at"}),
    ]
)
NOTE = "---\nperdure: 1\nkind: memory\nkey: profile|fact\naliases: [a, b]\n---\n# Title\n\n- Lives in Seattle ^m1\n- [ ] call John ^t1\n> quoted\n"
BOOK = "# Lessons\n\n- Ask before deleting anything.\n- Be brief.\n\n## Other\n* Say it in French.\n"
TOML = 'url = "memory:"\ndeadline_s = 3.5\nspace = "a"\nhistory_messages_max = 60\n'
RPC = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"recall","arguments":{"query":"x"}}}'
VOCABULARY = b"".join(b"%s %d\n" % (base64.b64encode(bytes([one])), one) for one in range(256))


def parsers(folder: Path, memory: perdure.Memory) -> list[Parser]:
    """All of them, on a folder to write in and a memory to import into."""
    return [*_models(memory), *_words(), *_files(folder, memory), *_addresses(folder)]


def _models(memory: perdure.Memory) -> list[Parser]:
    said = tuple(memory.messages(5)) or (memory.append("user", "I moved to Seattle, and will call John"),)
    request = ExtractionRequest(said, known=(EntityName("person", "John"),))
    thought = f"<think>hm</think>Sure:\n```json\n{FOLD}\n```"
    return [
        Parser("answers.read_object", answers.read_object, (FOLD, thought, EXTRACTED)),
        Parser("answers.read_answer", lambda text: answers.read_answer(text, EXTRACTION), (EXTRACTED, FOLD)),
        Parser("answers.without_thoughts", answers.without_thoughts, (thought,)),
        Parser("replies.read_fold", replies.read_fold, (FOLD, thought)),
        Parser("replies.read_text", replies.read_text, ("They talked.", thought)),
        Parser("replies.read_session", replies.read_session, ('{"title": "x", "summary": "y", "topics": ["z"]}', FOLD)),
        Parser("replies.read_spine", replies.read_spine, ('{"spine": "x", "people": ["Ann"]}', FOLD)),
        Parser("replies.read_extraction", lambda text: replies.read_extraction(text, request), (EXTRACTED,)),
        Parser(
            "replies.split_reply", replies.split_reply, ("Hello.\nMEMORY_APPEND: be brief\nBye", "```\nMEMORY_APPEND: x\n```")
        ),
    ]


def _words() -> list[Parser]:
    return [
        Parser("extract_time_range", lambda text: extract_time_range(text, NOW, "Europe/Berlin"), TIMES, 8),
        Parser("find_times", lambda text: mentions.find_times(text[:8_000], NOW, "UTC"), TIMES, 5, trusted=True),
        Parser("understand", lambda text: understand(text, NOW, "UTC"), TIMES, 5, trusted=True),
        Parser("sentences", sentences.sentences, (*TIMES, "One. Two! Three? e.g. four… 3.5 kg."), 5, trusted=True),
        Parser("lexemes", lambda text: lexicon.lexemes(text[:100_000]), TIMES, 5, trusted=True),
        Parser(
            "instant_us",
            lambda value: instant_us(value, zone_named("Europe/Berlin"), "`start`"),
            ("2024-05-01T09:30:00Z", "2024-05-01", 1714521600, "1714521600"),
            takes_anything=True,
        ),
        Parser("zone_named", zone_named, ("Europe/Berlin", "UTC", "Etc/GMT+3"), takes_anything=True),
        Parser(
            "next_slot",
            lambda text: (is_repeat(text), next_slot(text, NOW)),
            ("0 7 * * 1", "*/5 * 1,15 * *", "every:60"),
            5,
        ),
        *(
            Parser(f"names.parse {one}", partial(addresses.parse, spelling=one), (sample,), 4, takes_anything=True)
            for one, sample in addresses.EXAMPLES.items()
        ),
        Parser("names.split_channel", addresses.split_channel, ("discord:42",)),
        Parser(
            "entities.parse_ref", entities.parse_ref, ("person:John Doe", "place:Zürich", "org:Acme & Co"), takes_anything=True
        ),
        Parser(
            "entities.parse_key",
            entities.parse_key,
            ("people|person|mukesh|preference", "profile|fact|home"),
            takes_anything=True,
        ),
        Parser("parse_blend", parse_blend, ("off", "on", "0.4,0.3,0.3")),
    ]


def _files(folder: Path, memory: perdure.Memory) -> list[Parser]:
    held = next(iter(memory.conversation.transcripts.list(limit=1)), None)
    transcript = Path(held.path).read_bytes() if held is not None else b"# Session\n"
    exported = io.BytesIO()
    memory.export(exported)
    whole = exported.getvalue()
    note = folder / "note.md"
    vocabulary = folder / "spoilt.tiktoken"

    def with_note(raw: bytes) -> object:
        note.write_bytes(raw)
        _, body, _ = read_note(note)
        return [*portability.bullets(body)]

    def counted(raw: bytes) -> object:
        vocabulary.write_bytes(raw)
        return token_counter(str(vocabulary)).count("hello world")

    return [
        Parser("read_document", json_form.read_document, (DOCUMENT, DOCUMENT.decode()), 10, takes_anything=True),
        Parser("check_session_id", json_form.check_session_id, ("ana:coach:s1",), takes_anything=True),
        Parser(
            "transcripts.read_messages",
            lambda raw: (transcripts.survey(raw), transcripts.read_head(raw[:1000]), transcripts.read_messages(raw)),
            (transcript,),
            own=True,
        ),
        Parser("lessons.lessons_of", lessons.lessons_of, (BOOK,), 5, trusted=True),
        Parser("lessons.with_lessons", lambda text: lessons.with_lessons(text, ["Be kind."]), (BOOK,), 5, trusted=True),
        Parser(
            "portability.foreign_items",
            lambda text: portability.foreign_items(text, NOW),
            (MEM0, MCP_GRAPH),
            takes_anything=True,
        ),
        Parser("auditing.read_export", auditing.read_export, (MEM0, MCP_GRAPH), takes_anything=True),
        Parser("portability.bullets", lambda text: [*portability.bullets(text)], (NOTE,), 5),
        Parser("read_note", with_note, (NOTE.encode(),), 2),
        Parser(
            "import_ jsonl",
            lambda raw: memory.import_(io.BytesIO(raw), dry_run=True, replace=True),
            (whole, gzip.compress(whole)),
            1,
        ),
        Parser("import_ sealed", lambda raw: memory.import_(sealed(raw), "jsonl", dry_run=True, replace=True), (whole,), 1),
        Parser(
            "import_ foreign", lambda raw: memory.import_(io.BytesIO(raw), dry_run=True), (MEM0.encode(), MCP_GRAPH.encode()), 2
        ),
        Parser("audit", memory.memories.audit, (MEM0, MCP_GRAPH), 2, takes_anything=True),
        Parser("tiktoken file", counted, (VOCABULARY,), 1),
        Parser("mcp.examine", wire.examine, (RPC,)),
    ]


def _addresses(folder: Path) -> list[Parser]:
    toml = folder / "perdure.toml"

    def from_file(raw: bytes) -> object:
        toml.write_bytes(raw)
        return settings.load({"PERDURE_CONFIG": str(toml)})

    keys = [*settings.defaults()]

    def from_environment(text: str) -> object:
        return settings.load({f"PERDURE_{keys[sum(map(ord, text[:50])) % len(keys)].upper()}": text})

    return [
        Parser("store URL", target, ("sqlite:///a.db", "postgresql://u:p@h:5432/d?x=y", "memory:", "sqlite:////tmp/a%20b.db")),
        Parser("settings file", from_file, (TOML.encode(),), 3),
        Parser("settings variable", from_environment, ("full", "3", "2.5", "Europe/Berlin", "companion"), 3),
        Parser(
            "check_address",
            lambda text: check_address("the model", text, "m", "k"),
            ("http://localhost:8080/v1", "https://api.example.org"),
        ),
        Parser("tokenizer", token_counter, ("cl100k", "a.tiktoken"), 3),
        Parser("host_of", lambda raw: host_of(raw), (b"localhost:8765", b"[::1]:80", b"memory.example.org.")),
    ]


def sealed(raw: bytes) -> io.BytesIO:
    """A spoilt export with an end that fits it again, as somebody could make it who knows how: the rows are read then."""
    lines = [line for line in raw.splitlines() if line.strip()]
    body = b"".join(line + b"\n" for line in lines[:-1])
    counts: dict[str, int] = {}
    for line in lines[1:-1]:
        try:
            table = str(json.loads(line)["table"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        counts[table] = counts.get(table, 0) + 1
    end = json.dumps({"rows": counts, "sha256": hashlib.sha256(body).hexdigest()})
    return io.BytesIO(body + end.encode() + b"\n")


def given_to_parser(parser: Parser, hostile: Hostile) -> Any:
    """A sound sample, a spoilt one, or something else altogether."""
    kind = hostile.chance.random()
    sample = hostile.chance.choice(parser.samples)
    if kind < 0.05:
        return sample
    if kind < 0.2 and parser.takes_anything:
        return hostile.any()
    if isinstance(sample, bytes):
        raw = hostile.spoilt_bytes(sample) if kind < 0.9 else hostile.text().encode(errors="surrogatepass")
        return _respelt(raw, hostile) if kind > 0.7 and kind < 0.9 else raw
    if not isinstance(sample, str):
        return hostile.any()
    text = hostile.spoilt(sample) if kind < 0.75 else hostile.text()
    if 0.6 < kind < 0.75 and sample[:1] == "{":
        text = as_json(hostile.spoilt_value(json.loads(sample if "\n{" not in sample else sample.splitlines()[0])))
    return text.encode(errors="replace").decode().replace("\0", " ") if parser.trusted else text


def _respelt(raw: bytes, hostile: Hostile) -> bytes:
    """Bytes that were lines of JSON, one of them changed as a value instead of as text."""
    lines = raw.splitlines()
    at = hostile.chance.randrange(len(lines)) if lines else 0
    try:
        lines[at] = as_json(hostile.spoilt_value(json.loads(lines[at]))).encode(errors="surrogatepass")
    except (ValueError, RecursionError, IndexError):
        return raw
    return b"\n".join(lines) + b"\n"


def as_json(value: Any) -> str:
    """JSON of whatever it is, with what Python allows and JSON does not."""
    if has_more_parts(value, 100_000):
        return "[" * 100_000
    try:
        return json.dumps(value, default=lambda one: type(one).__name__)[:2_000_000]
    except (ValueError, TypeError, RecursionError, MemoryError):
        return "[" * 50_000
    except Exception:
        return '"\\ud800"'
