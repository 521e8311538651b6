"""Standing instructions: which sentences are orders that last, where they stand, and which order puts another out of force."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.extraction.order_topics import says_same_order, withdraws
from perdure.engine.extraction.orders import (
    FOUND_MAX,
    ORDER_CHARS_MAX,
    WINDOW_CHARS,
    has_hint,
    recognised,
    standing_instructions,
)

ORDERS = [
    "Always answer in French.",
    "Never schedule anything before 9.",
    "From now on call me Doc.",
    "When I ask about books, always give the genre.",
    "please don't use emojis any more",
    "Whenever I ask about deadlines, use month-day-year.",
    "ok thanks, but from now on please skip the introductions",
    "I'd like you to always list pros and cons.",
    "Could you always give the year when you mention a film?",
    "I'm colour blind, so always describe charts in words.",
    "Jarvis, always answer in French.",
    "By default, use metric units.",
    "Warn me whenever a recipe takes longer than an hour.",
    "You should never share my address with anyone.",
    "All your answers should be under 200 words.",
    "In future, send me the summary first.",
    "Under no circumstances should you book flights with a layover.",
    "Answer in rhymes, always.",
    "You can call me Lou.",
    "No more emojis, please.",
    "Don’t ever call me by my last name.",
    "Antworte bitte immer auf Deutsch.",
    "Ab jetzt nenn mich Doc.",
    "Benutze bitte keine Emojis mehr.",
    "Réponds toujours en français.",
    "Désormais, tutoie-moi.",
    "N'utilise plus d'emojis s'il te plaît.",
    "Responde siempre en español.",
    "A partir de ahora llámame Doc.",
    "Nunca programes nada antes de las 9.",
]
STOPS = ["Stop answering in French.", "please quit calling me sir", "Hör auf, mich zu siezen.", "Deja de usar emojis."]
WITHDRAWALS = [
    "You can use emojis again.",
    "You don't have to answer in French any more.",
    "Forget what I said about bullet points.",
    "Please go back to metric units.",
    "That rule about page numbers no longer applies.",
    "Du kannst wieder Emojis benutzen.",
    "Tu peux de nouveau utiliser des emojis.",
    "Puedes volver a usar emojis.",
]
NO_ORDERS = [
    "please don't forget the milk",
    "make sure the table has three columns",
    "I always forget where I parked.",
    "I never liked him.",
    "She always calls me at night.",
    "Do you always answer in English?",
    "You should always wear sunscreen, right?",
    "Never mind, I found it.",
    "Always a pleasure talking to you!",
    "From now on I will get up at six.",
    "Going forward, the team will meet on Tuesdays.",
    "Whenever I go to Rome, I eat gelato.",
    "Whenever you're ready, send me the file.",
    "Call me tomorrow.",
    "Call me Monday.",
    "My friends call me Bobby.",
    'The sign said "Never feed the bears".',
    "He said: always bring a towel.",
    "My boss told me: from now on use the new form.",
    "Always use sunscreen, my dermatologist keeps telling me.",
    "Tell Marco that from now on he should call me first.",
    "Dear team, going forward please submit your hours by Friday.",
    "The function should always return a list.",
    "Whenever the user clicks the button, show a spinner.",
    "Make the dropdown open by default.",
    "Write a function that always rounds up.",
    "Can you list every time I mentioned Rome?",
    "I love hiking, but never use poles.",
    "Don't do that again.",
    "`always use tabs`",
    "> From now on, all tickets need an estimate.",
    "When I get home, remind me to water the plants.",
    "Use British spelling for this essay, always.",
    "You can use the car again, I fixed it.",
    "Ich vergesse immer meine Schlüssel.",
    "Chaque fois que je vais à Paris, il pleut.",
    "Siempre olvido las llaves.",
]


def found(text: str) -> list[str]:
    return [text[one.start : one.end] for one in standing_instructions(text)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((text, "order") for text in ORDERS),
        *((text, "stop") for text in STOPS),
        *((text, "withdrawal") for text in WITHDRAWALS),
    ],
)
def test_a_lasting_order_is_found_whole(text: str, kind: str) -> None:
    [one] = standing_instructions(text)
    assert (one.start, one.end, one.kind) == (0, len(text), kind)


@pytest.mark.parametrize("text", NO_ORDERS)
def test_what_is_no_lasting_order_is_left_alone(text: str) -> None:
    assert standing_instructions(text) == ()


def test_within_a_message_only_the_sentences_that_order_are_found() -> None:
    text = "Thanks, that worked!  From now on tell me the price, too.\n\nNever use emojis. What should I pack?"
    assert found(text) == ["From now on tell me the price, too.", "Never use emojis."]


def test_an_order_that_ends_in_a_colon_takes_its_list_along() -> None:
    text = "Hello!\nFrom now on:\n- answer in French\n- no emojis\n\nNow, what is for dinner?"
    assert found(text) == ["From now on:\n- answer in French\n- no emojis"]
    assert found("From now on:\nno emojis") == []
    text = "From now on answer like this:\n1. the result\n2. always the reason\nThanks"
    assert found(text) == ["From now on answer like this:\n1. the result\n2. always the reason"]


@pytest.mark.parametrize(
    "text",
    [
        "Look at this config:\n```\n# always use tabs\n```\nWhat does it do?",
        "Can you proofread this email: Hi all, from now on please always log your hours on Fridays. Thanks, Kim",
        "Alice: from now on call me Al\nBob: sure\nAlice: and never be late again",
        "From: Kim\nTo: all\nSubject: hours\nFrom now on please log your hours every Friday.",
        "Write a story about a guard. Always describe the weather first.",
        "The house rules are:\nAlways close the door.\nNever open the window.",
        "- Always close the door\n- Never open the window",
    ],
)
def test_what_is_pasted_quoted_or_made_up_is_nobodys_order(text: str) -> None:
    assert standing_instructions(text) == ()


def test_of_a_long_message_only_the_beginning_and_the_last_paragraph_are_looked_at() -> None:
    order, middle = "From now on answer me in French.", "The river was wide and slow that year. " * 200
    assert found(f"{order} {middle}") == [order]
    assert found(f"{middle}\n\n{order}") == [order]
    assert found(f"{middle}{order} {middle}") == []
    assert found(f"{middle}{order}") == [], "it does not stand apart from the document"
    assert found(f"{middle}\n\nAlways close the door.") == [], "it may be the end of the document"
    cut = "x" * (WINDOW_CHARS - 10) + "\nAlways answer in French, " + middle
    assert found(cut) == []


def test_no_more_orders_than_a_bound_and_none_longer_than_one() -> None:
    assert len(standing_instructions("Never use emojis, please.\n" * 100)) == FOUND_MAX
    assert found(f"Always answer in French {'and in the style of a long letter ' * 20}.") == []
    items = "\n- a point of this list" * 40
    assert found(f"From now on answer like this:{items}") == []


texts = st.text(max_size=300) | st.lists(
    st.sampled_from(
        [*ORDERS, *WITHDRAWALS, *NO_ORDERS, "\n", "\n\n", "- ", "```", '"', "please", "always", "from now on", ":", "İ"]
    ),
    max_size=40,
).map(" ".join)


@given(texts)
def test_any_text_has_spans_that_lie_in_it_in_order_without_blanks_at_their_ends(text: str) -> None:
    spans = standing_instructions(text)
    place = 0
    for one in spans:
        assert place <= one.start < one.end <= len(text)
        said = text[one.start : one.end]
        assert said == said.strip()
        assert len(said) <= ORDER_CHARS_MAX
        place = one.end
    assert len(spans) <= FOUND_MAX
    assert standing_instructions(text) == spans


@given(
    st.lists(
        st.sampled_from(["please", "so", "thanks", "again", "always", ";", ",", "and", "never", "whenever", "i"]), max_size=120
    )
)
def test_words_that_repeat_are_read_in_bounded_time(words: list[str]) -> None:
    started = time.thread_time()
    standing_instructions(" ".join(words))
    assert time.thread_time() - started < 1


def test_a_giant_is_read_no_further_than_its_ends() -> None:
    text = "always answer in french whenever i ask " * 50_000
    started = time.thread_time()
    standing_instructions(text)
    assert time.thread_time() - started < 1


@pytest.mark.parametrize("text", [*ORDERS, *STOPS, *WITHDRAWALS])
def test_the_first_look_overlooks_no_form(text: str) -> None:
    """What the quick check turns away, the forms would not have found."""
    assert recognised(text) is not None
    assert has_hint(text)


# -- which order puts another out of force


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("Please answer in German from now on.", "Always answer in French."),
        ("From now on answer in English.", "Always answer in French, I need the practice."),
        ("Call me Teddy.", "From now on call me Theo."),
        ("Never call me Bob.", "Call me Bob."),
        ("Always use imperial units.", "By default, use metric units."),
        ("Never use emojis.", "Always add an emoji to your answers."),
        ("Always keep it brief.", "From now on write detailed answers."),
        ("Antworte ab jetzt auf Englisch.", "Antworte bitte immer auf Deutsch."),
    ],
)
def test_an_order_of_the_same_topic_takes_the_place_of_the_old_one(said: str, held: str) -> None:
    assert withdraws(said, ["Never round numbers.", held], kind="order") == 1


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("Whenever I ask about Rome, answer in Italian.", "Always answer in French."),
        ("Always answer in French.", "When I ask about Rome, always answer in Italian."),
        ("Always answer in German.", "Always answer in French and sign as Jo."),
        ("Always answer in German.", "Always answer in French and never use emojis."),
        ("Never answer in English.", "Always answer in French."),
        ("Never call me Bob.", "Call me Doc."),
        ("From now on give long answers.", "Always use short paragraphs."),
        ("Never use exclamation marks.", "Never use emojis."),
        ("Always answer in French.", "Always answer in French."),
        ("Always give short and detailed answers.", "Always keep it brief."),
    ],
)
def test_an_order_that_may_stand_beside_the_old_one_leaves_it(said: str, held: str) -> None:
    assert withdraws(said, [held], kind="order") is None


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("You can use emojis again.", "Please don't use emojis any more."),
        ("You can answer in English again.", "Always answer in French."),
        ("Let's go back to English.", "From now on answer in Spanish."),
        ("You don't have to answer in French any more.", "Always answer in French."),
        ("Forget what I said about bullet points.", "Never use bullet points."),
        ("Scrap the rule about citing sources.", "Always cite your sources."),
        ("You no longer need to list the calories.", "For recipes, always give the calories."),
        ("Feel free to suggest Friday meetings again.", "Until further notice, don't suggest any meetings on Fridays."),
        ("Puedes volver a usar emojis.", "Por favor, no uses más emojis."),
    ],
)
def test_what_takes_back_names_the_order(said: str, held: str) -> None:
    assert withdraws(said, [held, "Never round numbers."], kind="withdrawal") == 0


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("Stop using emojis.", "Never use emojis."),
        ("Stop answering in French.", "Always answer in German."),
        ("Stop reminding me about the gym.", "Never mention the gym."),
        ("Stop translating every sentence.", "Always answer in short sentences."),
        ("Stop putting headings in short answers.", "Always keep your answers short."),
        ("Forget what I said.", "Never use bullet points."),
        ("You may use markdown again.", "Never use bullet points."),
        ("You can use emojis again.", "Always answer in French and never use emojis."),
    ],
)
def test_what_names_no_held_order_takes_none_back(said: str, held: str) -> None:
    kind = "stop" if said.startswith("Stop") else "withdrawal"
    assert withdraws(said, [held], kind=kind) is None  # type: ignore[arg-type]


def test_of_two_that_could_be_meant_none_is_taken_back() -> None:
    held = ["Never suggest podcasts on Mondays.", "Never suggest podcasts about crime."]
    assert withdraws("You can suggest podcasts again.", held, kind="withdrawal") is None
    assert withdraws("You can suggest podcasts again.", held[:1], kind="withdrawal") == 0


@pytest.mark.parametrize("letters", ["ſpanish", "ıtalian", "KOREAN", "DEUTSCH"])
def test_letters_that_only_look_alike_do_no_harm(letters: str) -> None:
    """Some letters of other alphabets count as one of ours where case is ignored."""
    assert withdraws(f"From now on answer in {letters}.", ["Always answer in French."], kind="order") == 0


def test_the_same_order_is_known_in_other_clothes() -> None:
    assert says_same_order("Please don't use emojis!", "do not use emojis, please")
    assert not says_same_order("Call me Doc.", "Call me Bob.")


@given(st.text(max_size=200), st.lists(st.sampled_from(ORDERS) | st.text(max_size=60), max_size=5))
def test_any_words_name_one_of_the_held_orders_or_none(said: str, held: list[str]) -> None:
    for kind in ("order", "withdrawal", "stop"):
        index = withdraws(said, held, kind=kind)  # type: ignore[arg-type]
        assert index is None or 0 <= index < len(held)
