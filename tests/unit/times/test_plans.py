"""Which way a goal looks: what is to be done lies ahead, what was done lies behind, and `may` is not always a month."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure.engine.times.question import extract_time_range

TUESDAY = datetime(2025, 10, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("goal", "day"),
    [
        ("Plan my long run for Sunday", "11-02"),
        ("Please plan dinner for Saturday", "11-01"),
        ("Book a table for Friday evening", "10-31"),
        ("Could you book the court for Tuesday at 6pm?", "11-04"),
        ("What should I cook on Saturday?", "11-01"),
        ("What can we do on Sunday?", "11-02"),
        ("I want to run on Sunday", "11-02"),
        ("I may be late on Friday", "10-31"),
        ("cancel my dentist on Thursday", "10-30"),
        ("Move my run from Thursday to Saturday", "10-30"),
        ("Prepare me for the meeting on Monday", "11-03"),
        ("Am I free on Friday?", "10-31"),
        ("pack for Sunday", "11-02"),
        ("Plane meinen langen Lauf für Sonntag", "11-02"),
        ("Bitte reserviere einen Tisch für Samstag", "11-01"),
        ("Kannst du für Samstag einen Tisch reservieren?", "11-01"),
        ("Was soll ich am Freitag kochen?", "10-31"),
        ("Planifie ma sortie longue pour dimanche", "11-02"),
        ("Peux-tu préparer un menu pour samedi ?", "11-01"),
        ("Que dois-je porter vendredi ?", "10-31"),
        ("Planea mi carrera larga para el domingo", "11-02"),
        ("Por favor, reserva una mesa para el sábado", "11-01"),
        ("¿Qué debo ponerme el viernes?", "10-31"),
        ("Which meetings do I have on Friday?", "10-31"),
        ("Welche Besprechungen habe ich am Freitag?", "10-31"),
        ("Habe ich am Freitag Termine?", "10-31"),
        ("Haben wir am Freitag etwas vor?", "10-31"),
        ("Welche Termine stehen am Freitag an?", "10-31"),
        ("Quelles réunions ai-je vendredi ?", "10-31"),
        ("Est-ce que j'ai une réunion prévue vendredi ?", "10-31"),
        ("¿Qué reuniones tengo el viernes?", "10-31"),
        ("¿Tenemos reuniones el viernes?", "10-31"),
    ],
)
def test_what_is_to_be_done_lies_ahead(goal: str, day: str) -> None:
    found = extract_time_range(goal, TUESDAY)
    assert found is not None
    assert found.start is not None
    assert f"{found.start:%m-%d}" == day


@pytest.mark.parametrize(
    ("goal", "day"),
    [
        ("How was my run on Sunday?", "10-26"),
        ("Wie viele Kudos habe ich am Freitag bekommen?", "10-24"),
        ("Welche Termine habe ich am Freitag verpasst?", "10-24"),
        ("Mit wem habe ich am Freitag gesprochen, als ich in Wien war?", "10-24"),
        ("Habe ich am Freitag eingekauft und gekocht?", "10-24"),
        ("Combien de kudos ai-je reçus vendredi ?", "10-24"),
        ("Qu'est-ce que j'ai fait vendredi ?", "10-24"),
        ("¿Qué hice el viernes?", "10-24"),
        ("Did I book a court on Tuesday?", "10-21"),
        ("Which book did I read on Sunday?", "10-26"),
        ("What was in the order on Friday?", "10-24"),
        ("What did we plan on Monday?", "10-27"),
        ("Prepare a summary of what happened on Monday", "10-27"),
        ("Should I have rested on Sunday?", "10-26"),
        ("How far did I run on Sunday, and what should I do on Wednesday?", "10-26"),
        ("Which kudos did I get on Sunday? Plan a thank-you", "10-26"),
        ("Sum up Friday", "10-24"),
        ("Was habe ich am Sonntag gegessen?", "10-26"),
        ("Zeig mir die Ausgaben vom Freitag", "10-24"),
        ("Qu'ai-je mangé dimanche ?", "10-26"),
        ("Montre-moi les dépenses de vendredi", "10-24"),
        ("¿Qué comí el domingo?", "10-26"),
        ("Muéstrame los gastos del viernes", "10-24"),
    ],
)
def test_what_was_done_lies_behind(goal: str, day: str) -> None:
    found = extract_time_range(goal, TUESDAY)
    assert found is not None
    assert found.start is not None
    assert f"{found.start:%m-%d}" == day


@pytest.mark.parametrize(
    "goal", ["This may be a silly question", "This may not work", "next may be hard", "It may rain", "May I ask something?"]
)
def test_may_is_no_month_where_it_is_a_verb(goal: str) -> None:
    assert extract_time_range(goal, TUESDAY) is None


@pytest.mark.parametrize("goal", ["In May we went there", "This May we go to Rome", "last May", "kudos of May 2025"])
def test_may_is_a_month_where_it_is_one(goal: str) -> None:
    found = extract_time_range(goal, TUESDAY)
    assert found is not None
    assert found.start is not None
    assert f"{found.start:%m}" == "05"
