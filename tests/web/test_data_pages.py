"""The pages of what was said and fetched, in a real browser: series, conversations, state, journal, jobs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, expect

import perdure
from perdure.app import parts_of
from perdure.domain.knowledge.proposals import Extraction
from perdure.interfaces.demo.past import PastClock

Look = Callable[..., Page]
NOTICE = "#page > .notice[role=status]"
ALERT = "#page > .notice[role=alert]"
PLAN = "/u/demo/state/training%2Fplan"
KITCHEN = "/u/demo/conversations/kitchen-plan?agent=planner&channel=terminal"
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>'\"\u202e{{7*7}}"


# -- series


def test_a_series_is_drawn_with_what_is_held_growing_and_missing(look: Look) -> None:
    page = look("/u/demo/series")
    expect(page.locator(".card", has_text="kudos_timeseries").locator(".k-gap").first).to_be_visible()
    page.get_by_role("link", name="kudos_timeseries").click()
    chart = page.locator(".coverage-chart")
    for kind in ("held", "provisional", "again", "gap"):
        expect(chart.locator(f".k-{kind}").first).to_be_attached()
    assert chart.locator(".bar-day").count() > 5
    assert "fetched" in (chart.locator(".k-held title").first.text_content() or "")


def test_a_series_is_looked_at_nearer_and_further_back(look: Look) -> None:
    page = look("/u/demo/series/kudos_timeseries")
    page.get_by_role("link", name="90 days").click()
    expect(page.get_by_role("link", name="90 days")).to_have_attribute("aria-current", "true")
    first = page.locator("#coverage").inner_text()
    page.get_by_role("link", name="Earlier").click()
    expect(page.locator("#coverage")).not_to_have_text(first)
    page.get_by_role("link", name="Later").click()
    expect(page.locator("#coverage")).to_have_text(first)


def test_the_gaps_of_a_series_are_a_list_to_copy(look: Look) -> None:
    page = look("/u/demo/series/kudos_timeseries?days=90")
    page.get_by_text("As a list to copy").click()
    lines = page.locator("#gap-list").inner_text().splitlines()
    assert len(lines) >= 3
    assert all(re.fullmatch(r"\d{4}-\S+\t\d{4}-\S+", line) for line in lines)


def test_an_entry_tells_the_versions_that_lost(look: Look) -> None:
    page = look("/u/demo/series/runs_timeseries?days=90")
    page.get_by_role("row", name=re.compile("Hay in the barn")).get_by_role("link").click()
    expect(page.get_by_role("heading", name="Current")).to_be_visible()
    expect(page.locator(".timeline")).to_contain_text(re.compile("Long run|Easy run"))


def test_the_rules_of_a_series_are_changed(look: Look, site: Any) -> None:
    site.engine.memory("data").series("steps").merge([{"id": 1, "timestamp": "2026-01-01"}])
    page = look("/u/data/series/steps")
    page.get_by_text("Edit rules").click()
    page.get_by_label("Description").fill("Steps of the day")
    page.get_by_label("Entries at most").fill("")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(NOTICE)).to_contain_text("Rules saved")
    spec = site.engine.memory("data").series("steps").about().spec
    assert (spec.description, spec.max_entries) == ("Steps of the day", None)


# -- conversations


def test_a_digest_is_expanded_to_the_messages_it_was_made_of(look: Look) -> None:
    page = look(KITCHEN)
    assert page.locator(".moved").count() >= 3
    page.get_by_role("link", name=re.compile("^Summary 2 stands")).click()
    expect(page.locator("#layer-fold")).to_contain_text("Made from 16 messages")
    assert page.locator(".said.cited").count() == 16
    page.locator("#layer-fold .cited-list a").first.click()
    expect(page.locator(".said:target")).to_contain_text("What do they ask?")


def test_messages_are_found_by_their_words_and_shown_in_their_place(look: Look) -> None:
    page = look("/u/demo/conversations")
    page.keyboard.press("/")
    page.keyboard.type("cork warm quiet")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=re.compile("Cork is warm")).click()
    expect(page.locator(".said:target")).to_contain_text("Cork is warm")
    assert "/conversations/kitchen-plan" in page.url


def test_a_session_is_compacted_that_is_undone_and_it_is_closed(look: Look, site: Any) -> None:
    talk = site.engine.memory("data")
    for number in range(6):
        talk.append("user", f"Step {number}?", session="steps")
        talk.append("assistant", f"Step {number}.", session="steps")
    page = look("/u/data/conversations/steps")
    page.get_by_role("button", name="Compact").click()
    expect(page.locator(NOTICE)).to_contain_text("Every message stays in the log")
    expect(page.locator(".moved.here")).to_be_visible()
    page.get_by_role("button", name="Undo summary 1").click()
    expect(page.locator(".moved.undone")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page.locator(NOTICE)).to_contain_text("Session closed")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(NOTICE)).to_contain_text("open again")


# -- state


def test_a_revision_is_compared_and_restored_without_scripts_too(look: Look, site: Any) -> None:
    page = look(f"{PLAN}?compare=1&revision=3", scripts=False)
    expect(page.locator(".diff del", has_text='"long_run_km": 12')).to_be_visible()
    expect(page.locator(".diff ins", has_text='"long_run_km": 16')).to_be_visible()
    before = site.engine.memory("demo").state.find("training/plan").revision
    page.get_by_role("button", name="Restore revision 1").click()
    expect(page.locator(NOTICE)).to_contain_text(f"Revision 1 is the value again, as revision {before + 1}")
    assert site.engine.memory("demo").state.load("training/plan")["long_run_km"] == 12


def test_an_edit_of_what_has_changed_meanwhile_is_refused_and_not_lost(look: Look, site: Any) -> None:
    state = site.engine.memory("data").state
    state.save("units", "imperial")
    page = look("/u/data/state/units", failing=True)
    state.save("units", "metric")
    page.get_by_label("Value, as JSON").fill('"nautical"')
    page.get_by_role("button", name="Save").click()
    expect(page.locator(ALERT)).to_contain_text("revision")
    expect(page.get_by_label("Value, as JSON")).to_have_value('"nautical"')
    assert state.load("units") == "metric"
    page = look("/u/data/state/units")
    page.get_by_label("Value, as JSON").fill('"nautical"')
    page.get_by_role("button", name="Save").click()
    expect(page.locator(NOTICE)).to_contain_text("Saved as revision 3")


def test_what_is_no_json_is_told_where_it_is_wrong(look: Look) -> None:
    page = look("/u/data/state", failing=True)
    page.keyboard.press("n")
    page.keyboard.type("colour")
    page.get_by_label("Value, as JSON").fill("blue")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(ALERT)).to_contain_text("the value is no JSON (line 1")


# -- journal and jobs


def test_an_operation_is_undone_and_what_builds_on_it_is_asked_for(look: Look, site: Any) -> None:
    memory = site.engine.memory("data")
    for city in ("Faro", "Évora"):
        memory.remember(f"Lives in {city}", attribute="lives_in", value=city, entities=[f"place:{city}"])
    first = next(
        one for one in memory.journal.list(50) if one.kind == "statement" and one.action == "add" and "Faro" in str(one.after)
    )
    page = look(f"/u/data/journal/{first.seq}")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(ALERT)).to_contain_text("Should they be taken back, too?")
    page.get_by_role("button", name="Undo it with all that builds on it").click()
    expect(page.locator(NOTICE)).to_contain_text("It is undone")
    assert [one.content for one in memory.memories.list("PROFILE")] == []


def test_the_journal_is_filtered_by_what_and_whom(look: Look) -> None:
    page = look("/u/demo/journal?kind=todo&actor=user")
    badges = page.locator("ul[data-rows] .badge").all_inner_texts()
    assert badges
    assert all(text.endswith("todo") for text in badges)


class Unreachable:
    """An extractor whose server is down."""

    name = "a-model/1"

    def extract(self, _request: object) -> Extraction:
        raise ConnectionRefusedError


def test_jobs_that_were_given_up_get_fresh_tries(look: Look, site: Any) -> None:
    store, now, settings = parts_of(site.engine)
    clock = PastClock(now.now() - timedelta(days=10))
    troubled = perdure.Engine(store, clock, settings, models={"extractor": Unreachable()})
    troubled.memory("trouble").append("user", "I live in Porto")
    for _ in range(20):
        troubled.process()
        clock.set(clock.now() + timedelta(hours=2))
    page = look("/u/trouble/jobs")
    expect(page.locator("ul[data-rows] > li").first).to_contain_text("the extractor failed (ConnectionRefusedError)")
    page.get_by_role("button", name="Retry failed jobs").click()
    expect(page.locator(NOTICE)).to_contain_text("1 job gets fresh tries")
    assert site.engine.memory("trouble").admin.jobs("dead") == []


# -- text is data


def test_text_in_ids_keys_values_and_entries_is_inert(look: Look, site: Any) -> None:
    memory = site.engine.memory("eve", agent="a<b>", channel="c'\"&")
    plain = EVIL.replace("\u202e", "")
    message = memory.append("user", EVIL, session=f"s/{plain}", metadata={EVIL: EVIL})
    memory.state.save(f"k/{plain}", {"value": EVIL})
    memory.series(f"n/{plain}", description=EVIL).merge(
        [{"id": f"i/{plain}", "timestamp": message.at.isoformat(), "what": EVIL}]
    )
    place = "?agent=a%3Cb%3E&channel=c%27%22%26"
    page = look("/u/eve/state")
    for path in (
        "/conversations",
        f"/messages/{quote(message.id)}",
        "/state",
        f"/state/{quote(f'k/{plain}', safe='')}",
        "/series",
        f"/series/{quote(f'n/{plain}', safe='')}",
        f"/series/{quote(f'n/{plain}', safe='')}/entries/{quote(f'i/{plain}', safe='')}",
        "/journal",
        "/jobs",
    ):
        page.goto(f"{site.url}/u/eve{path}{place}")
        assert page.locator("main img, main script").count() == 0, path
        assert "\u202e" not in page.content(), path
    page.goto(f"{site.url}/u/eve/state/{quote(f'k/{plain}', safe='')}")
    assert "alert(1)" in page.locator("main").inner_text()
