"""What people say when they do not know the day: recently, the other day, a few weeks back; in four languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure.domain.conversation.messages import Message
from perdure.domain.knowledge.proposals import ExtractionRequest
from perdure.domain.scope import MessageId, SessionId
from perdure.engine.extraction.extractor import RuleExtractor
from perdure.engine.times.mentions import find_times
from perdure.engine.times.question import extract_time_range

NOW = datetime(2026, 5, 13, 17, 30, tzinfo=UTC)  # a Wednesday
LATELY = "2026-04-15 to 2026-05-13 17:30"
OTHER_DAY = "2026-05-06 to 2026-05-13"
A_WHILE_AGO = "2026-02-13 to 2026-04-29"
EARLIER = "2026-05-13 to 2026-05-13 17:30"
FEW_DAYS, FEW_WEEKS, FEW_MONTHS = "2026-05-07 to 2026-05-12", "2026-03-30 to 2026-05-04", "2025-11-01 to 2026-04-01"
LAST_DAYS, LAST_WEEKS, LAST_MONTHS = (f"{day} to 2026-05-13 17:30" for day in ("2026-05-07", "2026-04-01", "2025-11-13"))

ENGLISH = {
    LATELY: "recently; lately; What did Ana say recently?; Have I heard of Bob lately?; What am I reading these days?; not long ago",
    OTHER_DAY: "the other day; What did she tell me the other day?; the song we heard the other night",
    A_WHILE_AGO: "a while ago; A while back we talked about roofs, what was it?; some time ago",
    EARLIER: "earlier today; What did I ask you earlier today?",
    FEW_DAYS: "a few days ago; a few days back; several days ago; few days ago",
    FEW_WEEKS: "a few weeks back; What did we plan a few weeks ago?",
    FEW_MONTHS: "a few months back; several months ago",
    "2020-01-01 to 2025-01-01": "a few years ago",
    "2026-05-10 to 2026-05-12": "a couple of days ago; a couple days ago",
    "2026-04-20 to 2026-05-04": "a couple of weeks back",
    "2026-05-13 11:30 to 2026-05-13 15:30": "a few hours ago",
    LAST_DAYS: "in recent days; over the last days",
    LAST_WEEKS: "in recent weeks; the past weeks; What was said in the last weeks?",
    LAST_MONTHS: "in recent months; over the past months",
}
GERMAN = {
    LATELY: "kürzlich; Was hat Ana neulich gesagt?; vor kurzem; vor Kurzem; in letzter Zeit; Was war letztens?; dieser Tage",
    A_WHILE_AGO: "vor einiger Zeit; vor einer Weile",
    EARLIER: "Was habe ich vorhin gefragt?",
    FEW_DAYS: "vor ein paar Tagen; vor einigen Tagen",
    FEW_WEEKS: "vor ein paar Wochen; vor mehreren Wochen",
    LAST_DAYS: "in den letzten Tagen; die letzten Tage",
    LAST_WEEKS: "in den letzten Wochen; in den vergangenen Wochen",
}
FRENCH = {
    LATELY: "récemment; Qu'ai-je dit dernièrement ?; ces derniers temps; ces jours-ci; il y a peu de temps",
    OTHER_DAY: "l'autre jour; Que disait Ana l’autre soir ?",
    A_WHILE_AGO: "il y a quelque temps; il y a un certain temps",
    EARLIER: "plus tôt aujourd'hui; plus tôt dans la journée",
    FEW_DAYS: "il y a quelques jours; il y a plusieurs jours",
    FEW_WEEKS: "il y a quelques semaines",
    LAST_DAYS: "ces derniers jours; les derniers jours",
    LAST_WEEKS: "ces dernières semaines",
}
SPANISH = {
    LATELY: "recientemente; ¿Qué dijo Ana últimamente?; hace poco; estos días; no hace mucho",
    OTHER_DAY: "el otro día; ¿Qué pasó la otra noche?",
    A_WHILE_AGO: "hace un tiempo; hace algún tiempo",
    EARLIER: "hoy más temprano; hace un rato",
    FEW_DAYS: "hace unos días; hace algunos días; hace varios días",
    FEW_WEEKS: "hace unas semanas",
    "2026-05-10 to 2026-05-12": "hace un par de días",
    LAST_DAYS: "en los últimos días; en días recientes",
    LAST_WEEKS: "en las últimas semanas; en semanas recientes",
}
TABLES = (ENGLISH, GERMAN, FRENCH, SPANISH)


def rows() -> list[tuple[str, str]]:
    return [(text, ends) for table in TABLES for ends, texts in table.items() for text in texts.split("; ")]


def written(moment: datetime | None) -> str:
    if moment is None:
        return "…"
    return f"{moment:%Y-%m-%d}" if f"{moment:%H:%M}" == "00:00" else f"{moment:%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(("text", "ends"), rows())
def test_a_question_is_read_for_about_that_time(text: str, ends: str) -> None:
    for words in (text, text.upper()):
        found = extract_time_range(words, NOW, "UTC")
        assert found is not None, words
        assert f"{written(found.start)} to {written(found.end)}" == ends


FEW = (FEW_DAYS, FEW_WEEKS, FEW_MONTHS, "2020-01-01 to 2025-01-01", "2026-05-10 to 2026-05-12", "2026-04-20 to 2026-05-04")


@pytest.mark.parametrize(("text", "ends"), [(text, ends) for text, ends in rows() if ends not in FEW and "ago" not in text])
def test_a_message_is_read_alike_and_says_that_it_is_vague(text: str, ends: str) -> None:
    (mention,) = find_times(text, NOW, "UTC")
    assert f"{written(mention.first)} to {written(mention.last)}" == ends
    assert mention.vague


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("We met a few weeks back.", "2026-04-20"),
        ("We met several weeks ago.", "2026-04-20"),
        ("We met a couple of weeks ago.", "2026-04-27"),
        ("Wir trafen uns vor ein paar Wochen.", "2026-04-20"),
        ("On s'est vus il y a quelques semaines.", "2026-04-20"),
        ("Nos vimos hace unas semanas.", "2026-04-20"),
        ("Nos vimos hace un par de semanas.", "2026-04-27"),
    ],
)
def test_what_a_message_counts_is_dated_as_well_as_can_be(text: str, first: str) -> None:
    """A fact needs one date; a question needs a net."""
    (mention,) = find_times(text, NOW, "UTC")
    assert (written(mention.first), mention.vague) == (first, False)


@pytest.mark.parametrize(
    "text",
    [
        "One of these days I will call her.",
        "I'll finish it these days",
        "Estos días voy a llamarla",
        "I'm taking these days off",
        "What is the song These Days about?",
        "empty the Recently Deleted folder",
        "the last days of the war",
        "the other side",
        "once in a while",
        "wait a while",
        "a few good men",
        "a couple of friends",
        "recent changes",
        "several weeks",
        "an ein paar Tagen im Jahr",
        "Il y a peu de gens ici",
        "Hace buen tiempo",
        "el otro lado",
    ],
)
def test_what_only_sounds_like_it_gives_nothing(text: str) -> None:
    assert extract_time_range(text, NOW, "UTC") is None
    assert find_times(text, NOW, "UTC") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What did I recently buy in March?", "in March"),
        ("Was it the other day or on Monday?", "on Monday"),
        ("as recently as last week", "last week"),
        ("What did Ana say lately, since Monday?", "since Monday"),
    ],
)
def test_an_exact_time_is_taken_before_a_vague_one(text: str, words: str) -> None:
    found = extract_time_range(text, NOW, "UTC")
    assert found is not None
    assert found.words == words


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("in a few weeks", "2026-06-03 to 2026-06-04"),
        ("a few weeks from now", "2026-06-03 to 2026-06-04"),
        ("in ein paar Wochen", "2026-06-03 to 2026-06-04"),
        ("the last few weeks", "2026-04-22 17:30 to 2026-05-13 17:30"),
        ("until recently", "… to 2026-04-15"),
        ("desde hace poco", "2026-04-15 to …"),
    ],
)
def test_words_around_decide_which_way_it_goes(text: str, ends: str) -> None:
    found = extract_time_range(text, NOW, "UTC")
    assert found is not None
    assert f"{written(found.start)} to {written(found.end)}" == ends


def test_a_fact_is_not_dated_by_a_vague_word() -> None:
    """A guess could put it before what was said last week, as if that were newer."""
    for words, dated in (("recently", False), ("three weeks ago", True)):
        said = Message(MessageId("m1"), SessionId("s"), 1, 1, "user", f"I moved to Berlin {words}.", NOW, 1, {})
        found = RuleExtractor().extract(ExtractionRequest((said,)))
        assert [one.valid_from is not None for one in found.proposals] == [dated]
