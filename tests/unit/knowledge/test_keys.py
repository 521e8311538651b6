"""Slugs, references and memory keys (S3-5, S3-6, S3-12, X-22, X-23, X-24): one spelling, read back without loss."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.keys import (
    FINGERPRINT_CHARS,
    SLUG_CHARS_MAX,
    EntityRef,
    MemoryKey,
    entity_ref,
    fingerprint,
    memory_key,
    parse_key,
    parse_ref,
    slug,
)
from perdure.domain.knowledge.proposals import ENTITY_TYPES, FACT_TYPES, MEMORY_TYPES

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
labels = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)
types = st.sampled_from(ENTITY_TYPES)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("John Doe", "john_doe"),
        ("Acme Corp.", "acme_corp"),
        ("Austin, Texas", "austin_texas"),
        ("dashboard redesign", "dashboard_redesign"),
        ("Jean-Luc  Picard", "jean_luc_picard"),
        ("O'Brien", "obrien"),
        ("O’Brien", "obrien"),
        ("José", "josé"),
        ("JOSE\u0301", "josé"),
        ("李明", "李明"),
        ("Straße", "strasse"),
        ("Ｊｏｈｎ", "john"),
        ("__a__-b—c", "a_b_c"),
        ("हिन्दी", "हिन्दी"),
        ("rocket 🚀 club", "rocket_club"),
    ],
)
def test_slugs_follow_the_rule(label: str, expected: str) -> None:
    assert slug(label) == expected


def test_things_that_differ_in_a_sign_have_two_slugs() -> None:
    assert len({slug(label) for label in ("C", "C#", "C++")}) == 3
    assert slug("Phoenix 1.0") != slug("Phoenix 10")
    assert slug("½") == "1_2"


def test_a_label_of_signs_alone_is_spelled_by_code_point() -> None:
    assert slug("!!!") == "u21_u21_u21"
    assert slug("🚀") == "u1f680"
    assert slug("❤️") == slug("❤")
    assert slug("\ue000") == "ue000"


@pytest.mark.parametrize("label", ["", "   ", "\u200b", "\t\n", "___", "a\0", "\ud800"])
def test_a_label_without_a_name_is_refused(label: str) -> None:
    with pytest.raises(InvalidInput):
        slug(label)


@given(texts)
@example("a!\u0301")
@example("\u0345")
@example("ﬃ+#.1.2")
def test_the_slug_of_a_slug_is_itself(label: str) -> None:
    try:
        made = slug(label)
    except InvalidInput:
        return
    assert made == slug(made)
    assert 0 < len(made) <= SLUG_CHARS_MAX
    assert not set(made) & set("|: \t\n")


@given(st.text(st.sampled_from("abzAZ019.+#-_ '!|"), min_size=1, max_size=24).filter(lambda text: any(map(str.isalnum, text))))
def test_plain_letters_have_the_slug_of_their_wide_forms(label: str) -> None:
    wide = "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in label)
    assert slug(label) == slug(wide)


@pytest.mark.parametrize("piece", ["a", "\u0301\u0323", "\ufdfa", "李", "!", "a "])
def test_long_labels_are_bounded_in_length_and_time(piece: str) -> None:
    long = "x" + piece * (65_536 // len(piece))
    started = time.thread_time()
    made, other = slug(long), slug(long + "z")
    assert time.thread_time() - started < 2
    assert len(made) <= SLUG_CHARS_MAX
    assert made != other
    assert slug(made) == made


def test_references_are_read_with_and_without_a_type() -> None:
    """X-22."""
    assert entity_ref("person", "John Doe") == "person:john_doe"
    assert parse_ref("person:john_doe") == EntityRef("person", "john_doe")
    assert parse_ref("john_doe") == EntityRef(None, "john_doe")
    assert parse_ref("john_doe", type="person") == parse_ref("Person: John Doe", type="person")
    assert parse_ref("Dune: Part Two") == EntityRef(None, "dune_part_two")
    assert str(EntityRef(None, "john_doe")) == "john_doe"
    with pytest.raises(InvalidInput, match="org"):
        parse_ref("org:acme", type="person")
    with pytest.raises(InvalidInput):
        entity_ref("animal", "Rex")  # type: ignore[arg-type]


@given(types, labels)
def test_a_reference_is_read_as_it_was_written(kind: str, label: str) -> None:
    ref = entity_ref(kind, label)  # type: ignore[arg-type]
    assert str(parse_ref(ref)) == ref


def test_memory_keys_have_the_seeds_shape() -> None:
    """S3-12."""
    expected = "people|person|john_doe|relationship"
    assert memory_key("PEOPLE", "person", "john_doe", "relationship") == expected
    assert memory_key("PEOPLE", "person", "person:john_doe", "relationship") == expected
    assert memory_key("PEOPLE", None, "person:john_doe", "relationship") == expected
    assert parse_key("people|person|person:john_doe|relationship") == parse_key(expected)
    assert parse_key(expected).ref == EntityRef("person", "john_doe")


def test_without_an_entity_the_content_tells_memories_apart() -> None:
    """X-23."""
    dark = memory_key("PROFILE", None, None, "preference", content="Prefers dark mode")
    assert dark == memory_key("PROFILE", None, None, "preference", content="  prefers dark mode. ")
    assert dark != memory_key("PROFILE", None, None, "preference", content="Prefers light mode")
    assert fingerprint("Likes C") != fingerprint("Likes C++")
    assert fingerprint("कि") != fingerprint("की")
    assert fingerprint("!!!") != fingerprint("???")
    parsed = parse_key(dark)
    assert (parsed.type, parsed.entity_type, parsed.ref, parsed.fact_type) == ("PROFILE", None, None, "preference")
    assert len(parsed.slug) == FINGERPRINT_CHARS
    assert str(parsed) == dark


def test_old_open_loops_are_read_and_never_written() -> None:
    assert parse_key("open_loop|person|mom|fact") == MemoryKey("OPEN_LOOP", "person", "mom", "fact")
    assert parse_key("PEOPLE||person:mom|fact").ref == EntityRef("person", "mom")
    with pytest.raises(InvalidInput):
        memory_key("OPEN_LOOP", "person", "mom", "fact")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "people|person|john",
        "people|animal|rex|fact",
        "things|person|x|fact",
        "people|person||fact",
        "people|person|x|guess",
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_key(text)


@pytest.mark.parametrize(
    "arguments",
    [
        {"entity_type": "person", "primary_ref": None},
        {"entity_type": None, "primary_ref": "john_doe"},
        {"entity_type": "org", "primary_ref": "person:john_doe"},
        {"entity_type": None, "primary_ref": None, "content": " "},
        {"entity_type": "person", "primary_ref": "mom", "fact_type": "guess"},
    ],
)
def test_a_key_that_would_be_ambiguous_is_refused(arguments: dict) -> None:
    with pytest.raises(InvalidInput):
        memory_key(type="PEOPLE", **{"fact_type": "fact", **arguments})


@given(st.sampled_from(MEMORY_TYPES), types, labels, st.sampled_from(FACT_TYPES))
def test_a_key_is_read_as_it_was_written(memory: str, kind: str, label: str, fact: str) -> None:
    key = memory_key(memory, kind, label, fact)  # type: ignore[arg-type]
    assert str(parse_key(key)) == key


def test_fingerprints_of_long_contents_take_bounded_time() -> None:
    started = time.thread_time()
    fingerprint("x" + "\u0301\u0323" * 500_000)
    assert time.thread_time() - started < 2
