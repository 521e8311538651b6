"""How entities and memories are keyed: slugs, references such as `person:john_doe`, memory keys, values of terms.

Which two names mean one entity is not decided here: see `perdure.engine.names.compare`.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256
from typing import Literal

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.proposals import ENTITY_TYPES, FACT_TYPES, MEMORY_TYPES, EntityType, FactType, MemoryType
from perdure.domain.knowledge.records import TERM_BYTES_MAX
from perdure.domain.text.rules import brief, utf8_size
from perdure.domain.values import dataclass

StoredType = MemoryType | Literal["OPEN_LOOP"]
"""What an old key may say. `OPEN_LOOP` is read, never written."""

SLUG_CHARS_MAX = 100
LABEL_CHARS_READ = 400
"""Of a longer label the rest only enters the fingerprint: normalising long runs of accents takes quadratic time."""
CONTENT_CHARS_NORMALISED = 4_000
FINGERPRINT_CHARS = 16

_SETTLE_ROUNDS_MAX = 8
_SEPARATORS = re.compile(r"[\s_\u2044]+")
_VERSION_DOT = re.compile(r"(?<=\d)\.(?=\d)")
# `C`, `C#` and `C++` are three things; so are a grade `A` and a grade `A+`.
_PLUSES = re.compile(r"(?<=[^\W_])\++")
_SHARP = re.compile(r"(?<=[^\W_])#(?![^\W_])")
_ASCII_SEPARATORS = re.compile(r"[\s_-]+")
_ASCII_UNWRITTEN = re.compile(r"[^a-z0-9_]+")
_PREFIXED = re.compile(rf"\s*({'|'.join(ENTITY_TYPES)})\s*:(.*)", re.IGNORECASE | re.DOTALL)
_AROUND_WORDS = "\"'`.,;:!?()[]{}<>*_-–—…“”‘’«»¿¡。、，！？"


@dataclass(frozen=True, slots=True)
class EntityRef:
    """An entity as keys and references name it. A bare reference has no type."""

    type: EntityType | None
    slug: str

    def __str__(self) -> str:
        return self.slug if self.type is None else f"{self.type}:{self.slug}"


@dataclass(frozen=True, slots=True)
class MemoryKey:
    """The four parts of a memory key. Without an entity, `slug` is the fingerprint of the content."""

    type: StoredType
    entity_type: EntityType | None
    slug: str
    fact_type: FactType

    def __str__(self) -> str:
        return "|".join((self.type.lower(), self.entity_type or "", self.slug, self.fact_type))

    @property
    def ref(self) -> EntityRef | None:
        """The primary entity, if the key has one."""
        return None if self.entity_type is None else EntityRef(self.entity_type, self.slug)


def slug(label: str) -> str:
    """`label` as a key: lower case, punctuation removed, spaces and hyphens as underscores; letters of any script stay.

    Never empty, at most `SLUG_CHARS_MAX` characters, and the slug of a slug is itself. A dot between digits parts them
    (`1.0` is not `10`), `+` and `#` that end a word are spelled out (`C++` is not `C`). A label of punctuation or
    pictures alone is spelled by code point: `!!!` is `u21_u21_u21`. A label without a visible character is `InvalidInput`.
    """
    if label.isascii() and label.isalnum() and len(label) <= SLUG_CHARS_MAX:
        return label.lower()
    utf8_size(label, "a label")
    made = _settled(label[:LABEL_CHARS_READ]) or _code_points(label[:LABEL_CHARS_READ])
    if len(label) > LABEL_CHARS_READ:
        return _shortened(made, label.casefold())
    return made if len(made) <= SLUG_CHARS_MAX else _shortened(made, made)


def entity_ref(type: EntityType, label: str) -> str:  # noqa: A002 - the word of the requirements
    """The reference of an entity: `person:john_doe`."""
    return str(EntityRef(_entity_type(type), slug(label)))


def parse_ref(text: str, *, type: EntityType | None = None) -> EntityRef:  # noqa: A002 - as above
    """Read `person:john_doe`, or the bare `john_doe`, whose type is then `type`. A prefix that contradicts it is refused."""
    utf8_size(text, "a reference")
    wanted = None if type is None else _entity_type(type)
    # Only our four types are prefixes: `Dune: Part Two` is a bare label with a colon in it.
    match = _PREFIXED.fullmatch(text)
    if match is None:
        return EntityRef(wanted, slug(text))
    said = _entity_type(match[1].lower())
    if wanted is not None and said != wanted:
        raise InvalidInput(f"a reference begins with `{said}:` where `{wanted}` is meant; drop the prefix or correct it")
    return EntityRef(said, slug(match[2]))


def check_ref(ref: str) -> str:
    """`ref` if it says what kind of thing it names."""
    if parse_ref(ref).type is None:
        raise InvalidInput(f"entity {ref!r:.80} has no type; write it like `person:{ref:.40}`")
    return ref


def memory_key(
    type: MemoryType,  # noqa: A002 - as above
    entity_type: EntityType | None,
    primary_ref: str | None,
    fact_type: FactType,
    *,
    content: str = "",
) -> str:
    """The key of a memory: `people|person|john_doe|relationship`. The reference may be prefixed, bare, or a label.

    Without an entity the third part is a fingerprint of `content`: `profile||3f9a0c1d2b4e5f60|preference`.
    """
    if type not in MEMORY_TYPES:
        raise InvalidInput(f"`type` = {brief(type)} cannot be written; use one of {', '.join(MEMORY_TYPES)}")
    checked = _fact_type(fact_type)
    if primary_ref is None:
        if entity_type is not None:
            raise InvalidInput(f"`entity_type` = {brief(entity_type)} is given without a `primary_ref`; give both or none")
        return str(MemoryKey(type, None, fingerprint(content), checked))
    ref = parse_ref(primary_ref, type=entity_type)
    if ref.type is None:
        raise InvalidInput("`primary_ref` is bare and `entity_type` is missing; give the type or prefix the reference")
    return str(MemoryKey(type, ref.type, ref.slug, checked))


def parse_key(text: str) -> MemoryKey:
    """Read a memory key. The third part may be prefixed (`people|person|person:john_doe|fact`)."""
    utf8_size(text, "a memory key")
    parts = text.split("|")
    if len(parts) != 4:
        raise InvalidInput(f"a memory key has {len(parts)} parts, not 4; write it like `people|person|john_doe|relationship`")
    first, second, third, fourth = (part.strip() for part in parts)
    fact_type = _fact_type(fourth.lower())
    stored = _stored_type(first.upper())
    if not second:
        # A prefix names the type as well as the second part does.
        ref = parse_ref(third)
        return MemoryKey(stored, ref.type, ref.slug, fact_type)
    ref = parse_ref(third, type=_entity_type(second.lower()))
    return MemoryKey(stored, ref.type, ref.slug, fact_type)


def fingerprint(content: str) -> str:
    """Sixteen hexadecimal digits of what `content` says; case, spaces and punctuation around words do not count."""
    utf8_size(content, "content")
    text = unicodedata.normalize("NFKC", content) if len(content) <= CONTENT_CHARS_NORMALISED else content
    words = " ".join(filter(None, (word.strip(_AROUND_WORDS) for word in text.casefold().split()))) or text.strip()
    if not words:
        raise InvalidInput("`content` is empty, and there is no entity to make a key of; give one of them")
    return sha256(words.encode()).hexdigest()[:FINGERPRINT_CHARS]


def _settled(text: str) -> str:
    # Folding and removing can make new pairs of letter and accent: repeat until nothing changes.
    for _ in range(_SETTLE_ROUNDS_MAX):
        step = _slug_once(text)
        if step == text:
            break
        text = step
    return text


def _slug_once(text: str) -> str:
    if text.isascii():
        # The same, faster: nothing of it is normalised, and the only dash is the hyphen.
        text = _SHARP.sub("sharp", _PLUSES.sub(lambda pluses: "plus" * len(pluses[0]), _VERSION_DOT.sub("_", text.lower())))
        kept = _ASCII_UNWRITTEN.sub("", _ASCII_SEPARATORS.sub("_", text))
        return _SEPARATORS.sub("_", kept).strip("_")
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = _SHARP.sub("sharp", _PLUSES.sub(lambda pluses: "plus" * len(pluses[0]), _VERSION_DOT.sub("_", text)))
    parted = "".join("_" if unicodedata.category(char) == "Pd" else char for char in _SEPARATORS.sub("_", text))
    kept = "".join(char for char in parted if char == "_" or _is_written(char))
    return unicodedata.normalize("NFKC", _SEPARATORS.sub("_", kept).strip("_"))


def _is_written(char: str) -> bool:
    return unicodedata.category(char)[0] in "LMN" and not _is_selector(char)


def _is_selector(char: str) -> bool:
    """Marks that only choose how the character before them is drawn."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef" or char == "\u20e3"


def _code_points(text: str) -> str:
    seen = [char for char in text if unicodedata.category(char)[0] not in "ZC" and not _is_selector(char)]
    # Private and unassigned characters are drawn, if at all, by the user's own fonts: they count as visible.
    seen = seen or [char for char in text if unicodedata.category(char) in ("Co", "Cn")]
    if not seen or seen == ["_"] * len(seen):
        raise InvalidInput("a label has no visible character; give the entity a name")
    return "_".join(f"u{ord(char):x}" for char in seen)


def _shortened(made: str, whole: str) -> str:
    head = unicodedata.normalize("NFKC", made[: SLUG_CHARS_MAX - FINGERPRINT_CHARS - 1]).strip("_")
    return f"{head}_{sha256(whole.encode()).hexdigest()[:FINGERPRINT_CHARS]}"


def _entity_type(value: str) -> EntityType:
    for known in ENTITY_TYPES:
        if value == known:
            return known
    raise InvalidInput(f"the entity type {brief(value)} is unknown; use one of {', '.join(ENTITY_TYPES)}")


def _fact_type(value: str) -> FactType:
    for known in FACT_TYPES:
        if value == known:
            return known
    raise InvalidInput(f"the fact type {brief(value)} is unknown; use one of {', '.join(FACT_TYPES)}")


def _stored_type(value: str) -> StoredType:
    if value == "OPEN_LOOP":
        return "OPEN_LOOP"
    for known in MEMORY_TYPES:
        if value == known:
            return known
    raise InvalidInput(f"the memory type {brief(value)} is unknown; use one of {', '.join(MEMORY_TYPES)}")


def term_value(value: str) -> str:
    """A term's value as it is indexed: long ones by their digest, so that they fit into an index row."""
    if value.isascii() and len(value) <= TERM_BYTES_MAX:
        return value
    raw = value.encode()
    return value if len(raw) <= TERM_BYTES_MAX else f"sha256:{sha256(raw).hexdigest()}"
