"""What pages show: text is escaped and visible, times and numbers read well, drawings stay in their frame."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from markupsafe import Markup

from perdure.domain.reports import DayActivity
from perdure.interfaces.web.charts import NARROW, WIDE, Frame, activity, laid_out
from perdure.interfaces.web.filters import (
    entity_label,
    lasting,
    marked,
    moment,
    plural,
    reason,
    repeats,
    short,
    size,
    with_code,
    writer,
)
from perdure.interfaces.web.page import address, environment

NOW = datetime(2026, 3, 12, 9, tzinfo=UTC)


def test_every_value_of_a_template_is_escaped_and_visible() -> None:
    text = environment().from_string("{{ text }}").render(text="<b>\u202e\x07\n")
    assert text == "&lt;b&gt;\\u202e\\x07\n"


def test_markup_is_only_what_was_made_as_markup() -> None:
    assert marked("<i>ab</i>", [(3, 5)]) == Markup("&lt;i&gt;<mark>ab</mark>&lt;/i&gt;")
    assert marked("abc", [(5, 9), (-3, 1)]) == Markup("<mark>a</mark>bc")
    assert with_code("run `a <b>` now") == Markup("run <code>a &lt;b&gt;</code> now")
    assert with_code("an odd ` one <") == Markup("an odd ` one &lt;")


@pytest.mark.parametrize(
    ("back", "words"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(hours=5), "5 h ago"),
        (timedelta(days=2), "2 d ago"),
        (timedelta(days=20), "20 Feb"),
        (timedelta(days=400), "5 Feb 2025"),
        (-timedelta(hours=5), "in 5 h"),
        (-timedelta(days=5), "17 Mar"),
    ],
)
def test_a_moment_is_told_as_people_say_it(back: timedelta, words: str) -> None:
    told = moment(NOW - back, UTC, NOW)
    assert f">{words}</time>" in told
    assert (NOW - back).isoformat() in told


def test_numbers_and_names_read_well() -> None:
    assert (size(999), size(1_500), size(2_500_000)) == ("999 B", "1.5 kB", "2.5 MB")
    assert (lasting(0.02), lasting(45), lasting(7_200)) == ("20 ms", "45 s", "2 h")
    assert (plural(1, "memory", "memories"), plural(1_200, "hit")) == ("1 memory", "1,200 hits")
    assert short("a  b\nc" + "d" * 50, 10) == "a b cdddd…"
    assert entity_label("person:john_doe") == "John Doe"


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 9 * * 1", "every Monday at 09:00"),
        ("30 19 * * *", "every day at 19:30"),
        ("0 7 * * 1-5", "every weekday at 07:00"),
        ("*/5 * * * *", "*/5 * * * *"),
        ("0 7 1 * *", "0 7 1 * *"),
        ("often", "often"),
    ],
)
def test_a_simple_cron_line_is_said_in_words_and_any_other_is_shown(cron: str, words: str) -> None:
    assert repeats(cron) == words


def test_who_changed_something_and_why_is_said_without_names_of_the_code() -> None:
    assert [writer(one) for one in ("user", "agent:clerk", "rules/1", "digest/1")] == [
        "user",
        "clerk",
        "rules",
        "session summariser",
    ]
    assert reason("session_digest: messages 1 to 6") == "messages 1 to 6"
    assert reason("extracted from messages") == "from messages"
    assert reason("remember") == ""


def test_an_address_survives_any_name() -> None:
    assert address("a/b?c#d%", "memories", "x|y", q="ä b", agent=None) == "/u/a%2Fb%3Fc%23d%25/memories/x%7Cy?q=%C3%A4+b"


def test_bars_stand_on_their_line_and_within_the_frame() -> None:
    days = [DayActivity(date(2026, 3, 1) + timedelta(days=place), place, 2 * place) for place in range(30)]
    chart = activity(days)
    assert all(bar.messages_y + bar.messages_height == pytest.approx(chart.base) for bar in chart.bars)
    assert all(bar.changes_y >= 0 and 0 <= bar.x <= chart.width - bar.width for bar in chart.bars)
    assert chart.bars[-1].label
    assert activity([]).bars == ()


@pytest.mark.parametrize("frame", [WIDE, NARROW])
def test_a_graph_always_looks_the_same_and_stays_in_its_frame(frame: Frame) -> None:
    things = {f"person:p{number}": (f"P {number}", number + 1) for number in range(20)} | {"user": ("ana", 40)}
    links = [("user", f"person:p{number}", 1) for number in range(10)] + [("person:p15", "person:p16", 3)]
    first, again = laid_out(things, links, frame), laid_out(dict(reversed(things.items())), links, frame)
    assert first == again
    assert first.width == frame.width
    assert first.height <= frame.height_max
    assert len(first.nodes) == len(things)
    assert all(0 <= node.x <= first.width and 0 <= node.y <= first.height for node in first.nodes)
    assert first.lines.count("<line") == len(links)
    assert laid_out({}, [], frame).nodes == ()
    assert len(laid_out({"user": ("ana", 1)}, [], frame).nodes) == 1
