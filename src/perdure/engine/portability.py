"""The words of a vault: file names, text that stays inside its note, links, and what the lines of an edited note say.

Text from memory is data. In a note it can be read, but makes no link, no tag, no list and no other note of it.

What another engine has remembered (mem0's memories, the graph of MCP's reference memory server) becomes proposals of ours:
its texts as statements, and where the words tell an attribute that has a name here (`Lives in Rome`), with that attribute.
Entities of kinds that we do not keep are named in the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, get_args

from perdure.domain.knowledge.proposals import EntityName, EntityType, FactType, MemoryType, Proposal
from perdure.domain.text.secrets import without_secrets
from perdure.domain.values import dataclass, replace
from perdure.engine.extraction.predicates import attributes, attributes_that_are
from perdure.engine.knowledge.audit import export_entries, instant_of
from perdure.engine.knowledge.curator import value_in_words

NAME_CHARS_MAX = 60
BLOCK_CHARS = 10
STATEMENTS = "Statements"
_PLAIN = re.compile(r"[a-z0-9_]{1,60}")
_OTHERS = re.compile(r"[^a-z0-9]+")
# Names that mean a device on Windows, whatever their ending.
_DEVICES = frozenset(("con", "prn", "aux", "nul", *(f"{name}{number}" for name in ("com", "lpt") for number in range(10))))
_MARKUP = r"\`*_[]<>#|^~$%=!&{}"
_ESCAPES = {ord(char): f"\\{char}" for char in _MARKUP} | {ord("\n"): "<br>"}
_ESCAPES |= {code: f"&#{code};" for code in (*range(10), *range(11, 32), *range(127, 160), 0x2028, 0x2029)}
# Characters that turn the text around them, or that nobody sees.
_ESCAPES |= {code: f"&#{code};" for code in (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF)}
_UNESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])|<br\s*/?>|&#(\d{1,7});")
_IN_LINKS = str.maketrans({"[": "(", "]": ")", "|": "/", "\\": "/", "#": "＃", "^": "＾", "<": "‹", ">": "›", "`": "'"})
_BULLET = re.compile(r"[-*+] (?:\[([ xX/-])\] )?(.*)")
_BLOCK = re.compile(r"(?<!\s)\s+\^([0-9a-z-]+)\Z")
_HEADING = re.compile(r"#{1,6} (.*)")


def file_name(ref: str) -> str:
    """A name for the note of `ref`: no two refs share one, however the disk spells names, and none leaves its folder."""
    if _PLAIN.fullmatch(ref) and ref not in _DEVICES:
        return ref
    slug = _OTHERS.sub("-", ref.casefold()).strip("-")[:NAME_CHARS_MAX].strip("-")
    # Plain names have no hyphen, so these are never one of them.
    return f"{slug}-{_digest(ref)}" if slug else f"x-{_digest(ref)}"


def block_id(ref: str) -> str:
    """What marks the line that tells of `ref`."""
    return _digest(ref)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:BLOCK_CHARS]


def escaped(text: str) -> str:
    """`text` as one line of Markdown that shows it and does nothing else."""
    line = text.translate(_ESCAPES)
    return f"\\{line}" if line[:1] in ("-", "+") else line


def unescaped(line: str) -> str:
    """The text that a line shows; of an escaped one, the text that it was made of."""
    return _UNESCAPE.sub(_unescape, line)


def _unescape(found: re.Match[str]) -> str:
    if found[1] is not None:
        return found[1]
    if found[2] is None:
        return "\n"
    code = int(found[2])
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def link(folder: str, ref: str, label: str) -> str:
    """A link to another note."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in label.translate(_IN_LINKS)).split())[:100]
    return f"[[{folder}/{file_name(ref)}|{shown.strip() or folder}]]"


def quoted(text: str) -> str:
    """Several lines as a quotation."""
    return "\n".join(f"> {escaped(line)}" for line in text.split("\n"))


def fenced(text: str, language: str = "json") -> str:
    """A text as it is, behind a fence that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def section(title: str, lines: Iterable[str]) -> str:
    """A heading with lines under it; nothing if there are none."""
    found = list(lines)
    return "" if not found else "\n".join((f"## {title}", "", *found, ""))


def bullet(text: str, ref: str, *, done: bool | None = None) -> str:
    """A line of a list that can be edited: its mark at the end says which one it is."""
    box = "" if done is None else "[x] " if done else "[ ] "
    return f"- {box}{escaped(text)} ^{block_id(ref)}"


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A line of a list in a note, as it stands there now."""

    number: int
    text: str
    block: str | None = None
    done: bool | None = None
    """Whether its box is ticked; None: it has none."""


def bullets(body: str, under: str | None = None) -> Iterator[NoteLine]:
    """The lines of the lists in a note; only those under a heading, if one is named."""
    inside = under is None
    for number, line in enumerate(body.split("\n"), start=1):
        if (heading := _HEADING.match(line)) is not None:
            inside = under is None or heading[1].strip() == under
        elif inside and (found := _BULLET.fullmatch(line.lstrip())) is not None:
            block = _BLOCK.search(said := found[2].rstrip())
            if text := said[: block.start()] if block else said:
                box = None if found[1] is None else found[1] in "xX"
                yield NoteLine(number, unescaped(text).strip(), block[1] if block else None, box)


def changed_value(content: str, value: str | None, edited: str) -> str | None:
    """The value that an edited text has where `content` has `value`; None if it is worded in another way."""
    if not value or content.count(value) != 1:
        return None
    before, after = content.split(value)
    inner = edited[len(before) : len(edited) - len(after)]
    fits = edited.startswith(before) and edited.endswith(after) and len(edited) > len(before) + len(after)
    return inner.strip() or None if fits else None


ForeignFormat = Literal["mem0", "mcp"]
FOREIGN_FORMATS: tuple[ForeignFormat, ...] = get_args(ForeignFormat)
CONFIDENCE = 0.8
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_KINDS: dict[EntityType, str] = {
    "person": "person people human contact friend colleague coworker family employee customer character individual",
    "place": "place location city country region address town venue",
    "org": "org organization organisation company team business school university employer institution institute",
    "project": "project product repository repo codebase app application software",
}
_TYPES: dict[str, EntityType] = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_MEMORY_TYPES: dict[EntityType | None, MemoryType] = {"person": "PEOPLE", "project": "PROJECT"}
_USER = frozenset(("default user", "user", "me", "i", "myself", "the user"))


@dataclass(frozen=True, slots=True)
class ForeignItem:
    """One text or relation of another engine, as we would say it."""

    place: str
    kind: Literal["memory", "relation"]
    user: str
    """Whose it was there; empty: the export does not say."""
    proposal: Proposal


def foreign_format(entries: Sequence[Mapping[str, Any]]) -> ForeignFormat:
    graph = any("observations" in one or "relationType" in one or "entityType" in one for one in entries)
    return "mcp" if graph else "mem0"


def foreign_items(text: str, now: datetime) -> tuple[ForeignFormat, list[ForeignItem]]:
    """Everything that an export tells, in its order, texts before relations."""
    entries = export_entries(text)
    form = foreign_format(entries)
    names = {str(one["name"]): _name(str(one["name"]), str(one.get("entityType", ""))) for one in entries if "name" in one}
    # A graph of mem0 calls the user by the user's id.
    users = {str(one["user_id"]) for one in entries if one.get("user_id")}
    names |= {user: _Name(user, None, is_user=True) for user in users}
    texts: list[ForeignItem] = []
    relations: list[ForeignItem] = []
    for number, one in enumerate(entries):
        if isinstance(one.get("observations"), list):
            name = str(one.get("name", number))
            texts += _observations(name, names.get(name, _Name(name, None)), one["observations"])
        elif (content := one.get("memory", one.get("text", one.get("content")))) is not None:
            texts.append(_memory(one, number, str(content), now))
        else:
            relations += _relation(one, names)
    return form, texts + relations


@dataclass(frozen=True, slots=True)
class _Name:
    """Somebody or something that is named there."""

    label: str
    type: EntityType | None
    is_user: bool = False

    @property
    def entity(self) -> EntityName | None:
        return None if self.type is None or self.is_user else EntityName(self.type, self.label)


def _name(name: str, kind: str) -> _Name:
    # Before its parts are taken for words: then it has its form no longer. It names nothing that could be known by it.
    if (shown := without_secrets(name)) != name:
        return _Name(shown, None)
    label = " ".join(name.replace("_", " ").split())
    words = _WORD.findall(_CAMEL.sub(" ", kind).casefold())
    type_ = next((_TYPES[word] for word in reversed(words) if word in _TYPES), None)
    return _Name(label, type_, label.casefold() in _USER or words == ["user"])


def _observations(name: str, who: _Name, observations: Sequence[object]) -> Iterator[ForeignItem]:
    for place, said in enumerate(observations):
        text = " ".join(str(said).split())
        yield ForeignItem(without_secrets(f"{name}#{place}"), "memory", "", _of_text(text, who))


def _of_text(text: str, who: _Name) -> Proposal:
    known = value_in_words(text)
    entity = who.entity
    if who.is_user:
        return _proposal(text, (), None, (known.attribute, known.value) if known is not None and not known.who else None)
    first, said = who.label.casefold().split()[:1], text.casefold()
    named = who.label.casefold() in said or (len(first) == 1 and said.split()[:1] == first)
    if (
        known is not None
        and entity is not None
        and known.attribute in attributes_that_are("personal")
        and known.who in ("", who.label.casefold())
    ):
        content = text if named else f"{who.label} {text[0].lower()}{text[1:]}"
        return _proposal(content, (entity,), entity, (known.attribute, known.value))
    content = text if named else f"{who.label}: {text}"
    return _proposal(content, () if entity is None else (entity,), entity, None)


def _memory(one: Mapping[str, Any], number: int, text: str, now: datetime) -> ForeignItem:
    content = " ".join(text.split())
    known = value_in_words(content)
    made = _proposal(content, (), None, (known.attribute, known.value) if known is not None and not known.who else None)
    since = instant_of(one.get("created_at") or one.get("updated_at"))
    if since is not None and since <= now:
        made = replace(made, valid_from=since)
    return ForeignItem(str(one.get("id", number)), "memory", str(one.get("user_id") or ""), made)


def _relation(one: Mapping[str, Any], names: Mapping[str, _Name]) -> Iterator[ForeignItem]:
    ends = [one.get("from", one.get("source")), one.get("to", one.get("target", one.get("destination")))]
    kind = one.get("relationType", one.get("relationship", one.get("relation")))
    if not all(isinstance(part, str) and part.strip() for part in (*ends, kind)):
        return
    first, second = (names.get(str(end), _name(str(end), "")) for end in ends)
    words = " ".join(_CAMEL.sub(" ", without_secrets(str(kind))).replace("_", " ").replace("-", " ").split()).lower()
    attribute = words.replace(" ", "_")
    content = f"{words[0].upper()}{words[1:]} {second.label}" if first.is_user else f"{first.label} {words} {second.label}"
    entities = tuple(end.entity for end in (first, second) if end.entity is not None)
    has_slot = attribute in (attributes() if first.is_user else attributes_that_are("personal")) and (
        first.is_user or first.entity is not None
    )
    both = [end for end in (first, second) if end.type == "person" or end.is_user]
    fact: FactType = "relationship" if len(both) == 2 else "fact"
    made = _proposal(content, entities, first.entity, (attribute, second.label) if has_slot else None, fact)
    yield ForeignItem(without_secrets(f"{ends[0]} → {ends[1]}"), "relation", str(one.get("user_id") or ""), made)


def _proposal(
    content: str,
    entities: tuple[EntityName, ...],
    subject: EntityName | None,
    told_of: tuple[str, str] | None,
    fact: FactType = "fact",
) -> Proposal:
    attribute, value = told_of if told_of is not None else (None, None)
    spec = attributes().get(attribute or "")
    if spec is not None and spec.entity is not None and value is not None and not entities:
        entities = (EntityName(spec.entity, value),)
    primary = entities[0].type if entities else None
    return Proposal(
        type=_MEMORY_TYPES.get(primary, "PROFILE"),
        fact_type=fact if spec is None else spec.fact_type,
        content=content,
        entities=entities,
        subject=subject if attribute is not None else None,
        attribute=attribute,
        value=value,
        confidence=CONFIDENCE,
        importance=1 if spec is None else min(spec.importance, 2),
    )
