"""`conversation.session()` and `conversation.digest()`: one of what the listings show."""

from __future__ import annotations

import pytest

import perdure


@pytest.fixture
def talk() -> perdure.Memory:
    ana = perdure.open("memory:").memory("ana")
    for n in range(6):
        ana.append("user", f"question {n} about the trip")
        ana.append("assistant", f"answer {n}")
    return ana


def test_a_session_is_found_by_its_id_or_is_the_one_that_goes_on(talk: perdure.Memory) -> None:
    (listed,) = talk.conversation.sessions()
    assert talk.conversation.session() == talk.conversation.session(listed.id) == listed
    with pytest.raises(perdure.NotFound):
        talk.conversation.session("another")
    talk.conversation.delete(listed.id)
    with pytest.raises(perdure.NotFound):
        talk.conversation.session(listed.id)


def test_a_digest_is_found_by_its_version_also_when_it_was_undone(talk: perdure.Memory) -> None:
    (fold,) = talk.conversation.compact(force=True)
    session = talk.conversation.session().id
    assert (
        talk.conversation.digest("fold", fold.version)
        == talk.conversation.digest("fold", fold.version, session=session)
        == fold
    )
    talk.conversation.undo()
    assert talk.conversation.digest("fold", fold.version).undone
    for kind, version in (("fold", 9), ("rolling", 1), ("spine", 1)):
        with pytest.raises(perdure.NotFound, match="digests"):
            talk.conversation.digest(kind, version)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "version"), [("fold", 0), ("fold", True), ("fold", 2**63), ("fold", "1"), ("novel", 1)])
def test_what_cannot_be_a_digest_is_refused(talk: perdure.Memory, kind: str, version: object) -> None:
    with pytest.raises(perdure.InvalidInput):
        talk.conversation.digest(kind, version)  # type: ignore[arg-type]
