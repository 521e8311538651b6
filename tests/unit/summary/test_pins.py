"""Pins (S4-10, B-40): what must survive a compaction word for word, and which of it a budget holds."""

from __future__ import annotations

import json
import time

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from lanes import examples
from perdure.domain.conversation.messages import Role
from perdure.engine.summary.pins import BARE, LINE_CHARS_MAX, TOOL_PINS_MAX, Pin, carried, fit_pins, pins_of
from perdure.engine.summary.questions import StatementIndex, open_questions
from perdure.engine.text.literals import items_of
from perdure.engine.text.tokens import estimate_tokens
from talk import START, message, talk, talks, telling_text


def found(text: str) -> dict[str, str]:
    return {text[item.start : item.end]: item.kind for item in items_of(text)}


@pytest.mark.parametrize(
    ("text", "kind", "items"),
    [
        ("see https://x.example/a_(b)?q=1, ok", "url", ["https://x.example/a_(b)?q=1"]),
        ("postgres://db.internal:5432/app", "url", ["postgres://db.internal:5432/app"]),
        ("in ~/.config/app/settings.toml.", "path", ["~/.config/app/settings.toml"]),
        (r"C:\Users\me\notes.txt and \\srv\share\x", "path", [r"C:\Users\me\notes.txt", r"\\srv\share\x"]),
        ("the file report_v2.xlsx", "path", ["report_v2.xlsx"]),
        ("mail jo.d+x@ex-ample.co.uk now", "identifier", ["jo.d+x@ex-ample.co.uk"]),
        ("ask 0b6ef4f2-97ac-4b0c-8a38-1f3a2f0d9c11", "identifier", ["0b6ef4f2-97ac-4b0c-8a38-1f3a2f0d9c11"]),
        ("commit 9f2c1ab, sha256:deadbeef0011", "identifier", ["9f2c1ab", "sha256:deadbeef0011"]),
        ("host 10.0.3.17:5432 and v2.14.0-rc1", "identifier", ["10.0.3.17:5432", "v2.14.0-rc1"]),
        ("ring +49 170 1234567 or (555) 555-0188", "identifier", ["+49 170 1234567", "(555) 555-0188"]),
        ("IBAN DE89 3704 0044 0532 0130 00", "identifier", ["DE89 3704 0044 0532 0130 00"]),
        ("`max_conns` and DATABASE_URL, foo.bar()", "identifier", ["max_conns", "DATABASE_URL", "foo.bar()"]),
        ("订单号ORD-5512已发货", "identifier", ["ORD-5512"]),
        ("label JKT-ARL-S-MST", "identifier", ["JKT-ARL-S-MST"]),
        ("under § 12 Abs. 3", "identifier", ["§ 12 Abs. 3"]),
        ("flight LH1234, seat 14C, room 214", "identifier", ["flight LH1234", "seat 14C", "room 214"]),
        ("on 2026-11-15T10:00Z", "date", ["2026-11-15T10:00Z"]),
        ("on Friday, March 3rd, 2027 at 10:30am", "date", ["Friday, March 3rd, 2027", "10:30am"]),
        ("am 15.11.2026 und 3. März", "date", ["15.11.2026", "3. März"]),
        ("le 3 juin 2027, el 12 de junio de 2027", "date", ["3 juin 2027", "12 de junio de 2027"]),
        ("2026年10月17日见", "date", ["2026年10月17日"]),
        ("costs $1,200 or 45 EUR or 1.250,00 €", "quantity", ["$1,200", "45 EUR", "1.250,00 €"]),
        ("3.5 kg, 20 %, 12 people, -5 °C, 3-4 weeks", "quantity", ["3.5 kg", "20 %", "12 people", "-5 °C", "3-4 weeks"]),
    ],
)
def test_items_are_found_whole_in_running_text(text: str, kind: str, items: list[str]) -> None:
    there = found(text)
    assert {item: there.get(item) for item in items} == dict.fromkeys(items, kind)


@pytest.mark.parametrize(
    "text", ["Nothing to see here.", "JavaScript and GitHub are brands", "e.g. this, i.e. that", "well-known, co-operate"]
)
def test_plain_words_are_no_items(text: str) -> None:
    assert found(text) == {}


@given(telling_text)
def test_items_never_overlap(text: str) -> None:
    last = 0
    for item in items_of(text):
        assert last <= item.start < item.end <= len(text)
        last = item.end


@pytest.mark.parametrize(
    "rule",
    [
        "Never deploy on Fridays.",
        "always use metric",
        "You must ask me first",
        "don't ever call me",
        "please only email",
        "no more than 40 dollars",
        "I'm allergic to nuts",
        "Remember that she is deaf",
        "nothing before ten",
        "keep it under 5 lines",
        "Bitte niemals anrufen",
        "Höchstens 200 Euro",
        "Ich vertrage kein Gluten",
        "Il faut toujours demander",
        "jamais le vendredi",
        "Nunca antes de las diez",
        "no puedo comer marisco",
        "Siempre en efectivo",
        "千万不要告诉他",
        "必ず確認してください",
        "절대 금지",
    ],
)
def test_rules_of_the_user_are_constraints(rule: str) -> None:
    assert [pin.kind for pin in pins_of(talk(("user", rule)))] == ["constraint"]


def test_the_same_words_of_the_agent_are_no_rule() -> None:
    assert all(pin.kind != "constraint" for pin in pins_of(talk(("assistant", "You must never deploy on Fridays."))))


@pytest.mark.parametrize(
    ("turns", "is_open"),
    [
        ([("user", "Who is on call tonight?")], True),
        ([("user", "Who is on call tonight?"), ("assistant", "Lena is.")], False),
        ([("user", "Who is on call tonight?"), ("assistant", "I'm not sure, I'll check and get back to you.")], True),
        ([("user", "Who is on call tonight?"), ("user", "and hurry"), ("assistant", "Lena.")], False),
        (
            [("user", "Who is on call tonight?"), ("assistant", "Let me look."), ("tool", "lena"), ("assistant", "It's Lena.")],
            False,
        ),
        (
            [
                ("user", "Who is on call tonight?"),
                ("assistant", "I'll check."),
                ("user", "ok"),
                ("assistant", "On call tonight: Lena."),
            ],
            False,
        ),
        ([("user", "Wer hat heute Dienst?"), ("assistant", "Das weiß ich nicht, ich kläre das.")], True),
        ([("user", "¿Quién paga la cuenta?"), ("assistant", "No lo sé, voy a consultar.")], True),
        ([("user", "Qui a la clé ?"), ("assistant", "Je ne sais pas, je vais vérifier.")], True),
        ([("user", "专线什么时候开通？"), ("assistant", "我不确定，我去问一下。")], True),
        ([("user", "thanks, how are you?")], False),
    ],
)
def test_a_question_is_open_until_it_is_answered(turns: list[tuple[Role, str]], is_open: bool) -> None:
    assert any(pin.kind == "question" for pin in pins_of(talk(*turns))) == is_open
    assert bool(open_questions(talk(*turns))) == is_open


def test_what_is_said_to_be_open_is_a_question_without_a_mark() -> None:
    kinds = [pin.kind for pin in pins_of(talk(("user", "The venue is still open"), ("assistant", "The menu is TBD.")))]
    assert kinds == ["question", "question"]


def test_the_last_question_of_the_agent_is_open_until_the_user_speaks() -> None:
    asked: tuple[Role, str] = ("assistant", "Which colour would you like?")
    assert [pin.kind for pin in pins_of(talk(("user", "A new phone please"), asked))][-1] == "question"
    assert all(pin.kind != "question" for pin in pins_of(talk(asked, ("user", "Blue."))))


def test_a_line_says_when_and_who_and_keeps_the_words() -> None:
    (pin,) = pins_of(talk(("user", "Never   use “smart” quotes\u00a0here.")))
    assert pin.line == "[2026-11-15 user] Never   use “smart” quotes\u00a0here."
    (asked,) = pins_of(talk(("user", "Which region do we use?")))
    assert asked.line == "[2026-11-15 user asks] Which region do we use?"


def test_of_a_long_sentence_a_window_around_each_item_is_kept() -> None:
    filler = "and so on and on with many words " * 25
    (near, far) = pins_of(talk(("user", f"order A-1001 {filler}then ticket OPS-77 {filler}")))
    assert "order A-1001" in near.text
    assert "ticket OPS-77" in far.text
    assert max(len(near.text), len(far.text)) <= LINE_CHARS_MAX


@given(talks)
def test_pins_are_word_for_word(messages: tuple) -> None:  # type: ignore[type-arg]
    by_seq = {message.seq: message.content for message in messages}
    for pin in pins_of(messages):
        assert pin.text in by_seq[pin.seq]
        assert all(item in pin.text for item in pin.items)
        assert len(pin.text) <= LINE_CHARS_MAX or any(len(item) > LINE_CHARS_MAX - 20 for item in pin.items)


@given(talks, st.integers(0, 300), st.lists(telling_text, max_size=4))
def test_what_fits_is_within_the_budget_and_always_the_same(messages: tuple, tokens: int, previous: list[str]) -> None:  # type: ignore[type-arg]
    pins = carried(previous, messages)
    lines = fit_pins(pins, tokens, estimate_tokens)
    assert estimate_tokens("\n".join(lines)) <= tokens
    assert lines == fit_pins(carried(previous, messages), tokens, estimate_tokens)
    again = fit_pins(carried(lines, ()), tokens, estimate_tokens)
    assert estimate_tokens("\n".join(again)) <= tokens


def test_rules_go_before_questions_before_decisions_before_ids_before_amounts() -> None:
    said = talk(
        ("assistant", "It weighs 12 kg on our scale here today."),
        ("assistant", "The order is A-7 as far as I can see."),
        ("user", "We have the ticket OPS-7 for the door."),
        ("user", "We decided to wait for the other side."),
        ("user", "Never ring the bell on Sunday morning."),
        ("user", "Which of the regions do the rest use?"),
    )
    pins = pins_of(said)

    def held(lines: int) -> tuple[str, ...]:
        """With a counter to which all lines are equally long."""
        return tuple(line for line in fit_pins(pins, 21 * lines, lambda text: 10 * len(text.splitlines())) if line[0] == "[")

    order = ["Never ring", "Which of", "We decided", "OPS-7", "A-7", "12 kg"]
    for lines in range(len(order) + 1):
        assert sorted(word for word in order if word in "".join(held(lines))) == sorted(order[: len(held(lines))])
    assert len(held(len(order))) == len(order)


def test_newer_rules_go_before_older_ones() -> None:
    pins = pins_of(talk(*[("user", f"Never eat at place number {word}.") for word in ("one", "two", "three")]))
    assert fit_pins(pins, 20, estimate_tokens) == ("[2026-11-15 user] Never eat at place number three.",)


def test_lines_come_in_the_order_of_the_log_and_the_same_words_once() -> None:
    said = talk(
        ("user", "Never on Fridays."),
        ("user", "The order is A-1001."),
        ("user", "never on fridays!"),
        ("assistant", "Order A-1001, noted."),
    )
    assert fit_pins(pins_of(said), 500, estimate_tokens) == (
        "[2026-11-15 user] The order is A-1001.",
        "[2026-11-15 user] never on fridays!",
    )


def test_sentences_of_one_message_share_a_line_with_gaps_marked() -> None:
    said = talk(("user", "Never on Fridays. ok. The order is A-1001. It is late."))
    assert fit_pins(pins_of(said), 500, estimate_tokens) == (
        "[2026-11-15 user] Never on Fridays. … The order is A-1001. It is late.",
    )


def test_ids_of_lines_without_room_are_kept_bare() -> None:
    said = talk(
        *[
            ("assistant", f"Parcel number {number} has the tracking code TRK-{number} and is on its way to you now.")
            for number in range(100, 110)
        ]
    )
    lines = fit_pins(pins_of(said), 80, estimate_tokens)
    assert lines[-1].startswith(BARE)
    assert sum(f"TRK-{number}" in "\n".join(lines) for number in range(100, 110)) >= 6


def test_pins_survive_one_compaction_after_another() -> None:
    pinned: tuple[str, ...] = ()
    for number in range(30):
        extra = (
            "Never call before nine. The code is K-7731." if number == 0 else f"It is {number} o'clock and all is well in here."
        )
        pinned = fit_pins(carried(pinned, talk(("user", extra), ("assistant", "Noted."))), 120, estimate_tokens)
    assert "[2026-11-15 user] Never call before nine. The code is K-7731." in pinned


def test_bare_items_and_heads_are_read_back() -> None:
    pins = carried(
        ("[2025-01-02 user asks] Which one, A-1 or B-2?", "[tool] id=K-9", f"{BARE}X-1, Y-22", "no head at all K-3"), ()
    )
    assert [(pin.kind, pin.role, pin.items) for pin in pins] == [
        ("question", "user", ("A-1", "B-2")),
        ("identifier", "tool", ("K-9",)),
        ("identifier", "assistant", ("X-1",)),
        ("identifier", "assistant", ("Y-22",)),
        ("identifier", "assistant", ("K-3",)),
    ]
    assert pins[0].line == "[2025-01-02 user asks] Which one, A-1 or B-2?"


def test_a_carried_question_goes_when_it_is_answered() -> None:
    asked = ("[2026-11-01 user asks] Is the Hotel Avenida quiet at night?",)
    answer = talk(("assistant", "The Hotel Avenida is quiet at night; its rooms face the yard."))
    assert fit_pins(carried(asked, answer), 500, estimate_tokens) == ()
    assert fit_pins(carried(asked, talk(("user", "Nice weather in town"))), 500, estimate_tokens)[0] == asked[0]
    assert not StatementIndex(talk(("user", "Is the Hotel Avenida quiet at night?"))).settle(asked[0])


def test_a_giant_tool_result_gives_few_pins_quickly() -> None:
    rows = json.dumps(
        [{"id": f"row-{number}", "value": number * 3.5, "at": "2026-11-15T10:00:00Z"} for number in range(16_000)]
    )
    assert len(rows) > 900_000
    began = time.thread_time()
    pins = pins_of((message("tool", rows), message("tool", rows.replace("}, ", "},\n"), seq=2)))
    assert time.thread_time() - began < 2
    assert len(pins) <= 2 * TOOL_PINS_MAX


@settings(max_examples=examples(20))
@given(st.text("ab1.-_/:@#`?, \n\\'\"(){}[]<>€年", max_size=300))
def test_no_pattern_takes_long_on_odd_text(part: str) -> None:
    began = time.thread_time()
    pins_of(talk(("user", part * 200), ("assistant", part * 200)))
    assert time.thread_time() - began < 5


def test_thousands_of_messages_take_seconds() -> None:
    said = talk(
        *[
            (("user", "assistant")[n % 2], f"Order A-{n} of 12 kg goes to room {n} on 2026-11-15. Never open it! Is it heavy?")
            for n in range(2_000)
        ]
    )
    began = time.thread_time()
    fit_pins(pins_of(said), 1_000, estimate_tokens)
    assert time.thread_time() - began < 4


def test_no_budget_keeps_nothing() -> None:
    assert fit_pins(pins_of(talk(("user", "Never on Fridays."))), 0, estimate_tokens) == ()
    assert fit_pins((), 100, estimate_tokens) == ()
    assert fit_pins((Pin("identifier", "", (), 1, "user", START),), 100, estimate_tokens) == ()
