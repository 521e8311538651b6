"""Whose word something is. Trust follows the writer: what an agent stores is the agent's word, whatever source it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from perdure.domain.errors import Unsupported
from perdure.domain.knowledge.memories import Trust, least

Writer = Literal["user", "agent"]
"""Who makes a call: a person or a program of theirs or the operator's; or a model, through its tools or a key of its own."""

TRUST_OF_SOURCE: Mapping[str, Trust] = {
    "user": "user",
    "operator": "user",
    "seeded_profile": "user",
    "vault": "user",
    "agent": "agent",
    "assistant": "agent",
    "model": "agent",
    "shadow_extraction": "agent",
    "own_words": "agent",
    "curated_fold": "agent",
    "tool": "tool",
    "web": "tool",
    "file": "tool",
    "email": "tool",
    "document": "tool",
    "import": "import",
}
"""How far the word of each source goes; `web:example.org` is of the source `web`. What is not named here came from elsewhere:
`import`."""


def trust_of_source(source: str, writer: Writer = "user") -> Trust:
    """How far a statement is trusted that this writer says to have from there: never further than the writer."""
    return least((_word_of(source), writer), writer)


def source_of(source: str, writer: Writer) -> str:
    """The source as it is kept: an agent does not speak as the user."""
    return "agent" if writer == "agent" and _word_of(source) == "user" else source


def _word_of(source: str) -> Trust:
    return TRUST_OF_SOURCE.get(source.partition(":")[0], "import")


def actor_of(writer: Writer, agent: str) -> str:
    """The writer as the journal names them."""
    return "user" if writer == "user" else f"agent:{agent}"


def only_people(writer: Writer, what: str, instead: str) -> None:
    """Refuse to an agent what only a person decides."""
    if writer == "agent":
        raise Unsupported(f"an agent does not {what}; {instead}")
