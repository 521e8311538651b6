"""The ways to look at memories, in a real browser: by person and kind, as a list, over time and as a graph; and how they count."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from live_site import Site
from perdure.interfaces.web.charts import LETTER, LINE, NARROW, WIDE, Frame, laid_out
from perdure.types import NewStatement

Look = Callable[..., Page]
USER = "views"
PEOPLE = ("Ada Byron", "Emmy Noether", "Sofia Kovalevskaya")
FACETS = "aside.facets .facet"


@pytest.fixture(scope="module")
def known(site: Site) -> str:
    """A user with thirty notes on three people, one thing that changed, one pinned and one archived memory."""
    memory = site.engine.memory(USER)
    for number in range(30):
        person, kind = PEOPLE[number % 3], ("fact", "habit")[number % 2]
        memory.remember(f"Keeps notebook {number} for {person}", "PEOPLE", entities=[f"person:{person}"], fact_type=kind)
    start = datetime.now(UTC) - timedelta(days=400)
    memory.remember("Lives in Porto", attribute="lives_in", value="Porto", entities=["place:Porto"], valid_from=start)
    memory.remember("Lives in Lisbon", attribute="lives_in", value="Lisbon", entities=["place:Lisbon"])
    memory.remember("Prefers tea", fact_type="preference", pinned=True)
    gone = memory.remember("Collected stamps", fact_type="habit")
    assert gone.statement is not None
    memory.memories.archive(gone.statement.memory)
    return USER


def test_memories_are_grouped_by_person_and_kind_with_counts(look: Look, known: str, site: Site) -> None:
    page = look(f"/u/{known}/memories")
    counts = {one.entities: 0 for one in site.engine.memory(known).memories.groups()}
    for one in site.engine.memory(known).memories.groups():
        counts[one.entities] += one.count
    row = page.locator(".group-row", has_text="Ada Byron")
    expect(row.locator("b")).to_have_text(str(counts["person:ada_byron",]))
    expect(page.get_by_role("heading", name="People", exact=True)).to_be_visible()
    row.get_by_role("link", name=re.compile("^habit")).click()
    expect(page.locator("main [data-rows] > li")).to_have_count(1)
    expect(page.locator("main [data-rows]")).to_contain_text("Ada Byron")
    expect(page.locator(".filters select[name=kind]")).to_have_value("habit")


def test_the_list_is_narrowed_down_by_what_it_counts(look: Look, known: str) -> None:
    page = look(f"/u/{known}/memories?view=list")
    facet = page.locator(FACETS, has_text="People and things").get_by_role("link", name=re.compile("Emmy Noether"))
    count = int(facet.locator("b").inner_text())
    facet.click()
    expect(page.get_by_role("status").filter(has_text="memor")).to_have_text(re.compile(f"^{count} memor"))
    expect(page.locator("main [data-rows] > li")).to_have_count(count)
    page.locator(FACETS, has_text="Kind").get_by_role("link", name=re.compile("Fact")).click()
    expect(page.locator("main [data-rows] > li")).to_have_count(1)
    page.get_by_role("link", name="Clear").click()
    expect(page.locator("main [data-rows] > li")).not_to_have_count(1)


def test_memories_are_found_by_words_status_and_date(look: Look, known: str) -> None:
    page = look(f"/u/{known}/memories")
    page.locator("#find-here").fill("tea")
    page.locator("#find-here").press("Enter")
    expect(page.locator("main [data-rows] > li")).to_have_count(1)
    expect(page.locator("main [data-rows]")).to_contain_text("Prefers tea")
    page = look(f"/u/{known}/memories?status=archived")
    expect(page.locator("main [data-rows] > li")).to_have_count(1)
    expect(page.locator("main [data-rows]")).to_contain_text("Collected stamps")
    page = look(f"/u/{known}/memories?as_of={datetime.now(UTC) - timedelta(days=100):%Y-%m-%d}")
    expect(page.locator("main [data-rows] > li")).to_have_count(1)
    expect(page.locator("main [data-rows]")).to_contain_text("Lives in Porto")
    page = look(f"/u/{known}/memories?q=zzyzx")
    expect(page.get_by_role("heading", name="No results")).to_be_visible()


def test_a_long_list_goes_on_page_by_page(look: Look, site: Site) -> None:
    site.engine.memory("many").remember_many([NewStatement(f"Has seen bird number {number}") for number in range(60)])
    page = look("/u/many/memories?view=list")
    seen = page.locator("main [data-rows] > li .title").all_inner_texts()
    while page.get_by_role("link", name="Older").count():
        page.get_by_role("link", name="Older").click()
        page.wait_for_url(lambda url: "behind=" in url)
        fresh = page.locator("main [data-rows] > li .title").all_inner_texts()
        assert not {*fresh} & {*seen}
        seen += fresh
    assert len(seen) == 60
    page.get_by_role("link", name="Newest").click()
    expect(page.locator("main [data-rows] > li").first).to_contain_text(seen[0])


def test_the_timeline_tells_what_was_believed_when(look: Look, known: str) -> None:
    page = look(f"/u/{known}/timeline")
    card = page.locator(".card", has=page.get_by_role("heading", name="Lives in"))
    expect(card.locator("li")).to_have_count(2)
    expect(card.locator("li").nth(0)).to_contain_text("Porto")
    expect(card.locator("li").nth(1)).to_contain_text("now")
    replaced = page.locator("main [data-rows] > li", has_text="replaced").first
    expect(replaced).to_contain_text("Lives in Porto")
    expect(replaced).to_contain_text("Lives in Lisbon")
    page.get_by_role("link", name="Older").click()
    expect(page.locator("main [data-rows] > li").first).to_contain_text("learned")


def test_a_graph_shows_what_a_person_is_joined_to(look: Look, known: str) -> None:
    page = look("/u/demo/memories")
    page.get_by_role("link", name="Graph", exact=True).click()
    node = page.locator("figure.only-wide [data-node='person:rui']")
    node.focus()
    expect(page.locator("figure.only-wide svg.graph")).to_have_class(re.compile("focused"))
    expect(page.locator("figure.only-wide [data-node='org:tidewater']")).to_have_class(re.compile("near"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Rui", exact=True)).to_be_visible()


@pytest.mark.parametrize(("frame", "count"), [(WIDE, 200), (WIDE, 25), (NARROW, 30)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_label_of_a_graph_covers_another(frame: Frame, count: int, seed: int) -> None:
    chance = random.Random(seed)
    names = [f"person:p{number}" for number in range(count)]
    things = {name: (f"{chance.choice(PEOPLE)} {number}", chance.randint(1, 40)) for number, name in enumerate(names)}
    links = [(one, chance.choice(names), chance.randint(1, 9)) for one in names]
    graph = laid_out(things, [link for link in links if link[0] != link[1]], frame)
    assert len(graph.nodes) == count
    boxes = []
    assert not any(node.silent for node in graph.nodes)
    for node in graph.nodes:
        if node.silent:
            continue
        half = max(node.radius, len(node.label) * LETTER / 2)
        boxes.append((node.x - half, node.y - node.radius, node.x + half, node.y + node.radius + LINE))
    covered = [
        (one, other)
        for place, one in enumerate(boxes)
        for other in boxes[:place]
        if min(one[2], other[2]) - max(one[0], other[0]) > 1 and min(one[3], other[3]) - max(one[1], other[1]) > 1
    ]
    assert covered == []
    assert all(one[0] > -1 and one[2] < graph.width + 1 and one[1] > -1 and one[3] < graph.height + 1 for one in boxes)
