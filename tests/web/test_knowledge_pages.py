"""The pages of what is known, in a real browser: they load, do what they offer, and keep text from memory inert."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

Look = Callable[..., Page]
NOTICE = "#page > .notice[role=status]"


def test_a_memory_is_added_pinned_archived_and_restored(look: Look) -> None:
    page = look("/u/demo/memories")
    page.keyboard.press("n")
    page.keyboard.type("Grandmother Inês keeps bees in Sintra")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_contain_text("Grandmother Inês")
    expect(page.locator(NOTICE)).to_contain_text("Saved")
    page.get_by_role("button", name="Pin").click()
    expect(page.locator(NOTICE)).to_contain_text("Pinned")
    page.get_by_role("button", name="Unpin").click()
    expect(page.get_by_role("button", name="Archive")).to_be_visible()
    page.get_by_role("button", name="Archive").click()
    expect(page.locator(NOTICE)).to_contain_text("Nothing is lost")
    page.locator(NOTICE).get_by_role("button", name="Undo").click()
    expect(page.locator(NOTICE)).to_contain_text("is undone")
    expect(page.get_by_role("button", name="Archive")).to_be_visible()


def test_a_memory_is_corrected_and_its_history_stays(look: Look) -> None:
    page = look("/u/demo/memories?q=lisbon")
    page.get_by_role("link", name="Lives in Lisbon").first.click()
    page.locator("article summary", has_text="Correct").first.click()
    page.get_by_label("Correction").first.fill("Lives in Setúbal")
    page.get_by_label("lives in", exact=True).fill("Setúbal")
    page.locator("article").first.get_by_role("button", name="Save").click()
    expect(page.locator(NOTICE)).to_contain_text("Corrected")
    expect(page.locator("article").first).to_contain_text("Lives in Setúbal")
    expect(page.locator(".timeline")).to_contain_text("Lives in Lisbon")


def test_importance_and_label_are_edited(look: Look) -> None:
    page = look("/u/demo/memories?q=chess")
    page.locator("ul[data-rows] a").first.click()
    page.get_by_label("Importance").select_option("2")
    page.get_by_label("Label").fill("Bob at chess")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_have_text("Bob at chess")
    expect(page.locator("aside")).to_contain_text("2 of 3")


def test_the_words_of_evidence_lead_to_the_message(look: Look) -> None:
    page = look("/u/demo/search?q=Rui+neighbour&kind=memory")
    page.locator("ol[data-rows] .title a").first.click()
    expect(page.locator("mark").first).to_be_visible()


def test_a_search_says_why_each_hit_is_there_and_what_was_left_out(look: Look) -> None:
    page = look("/u/demo")
    page.keyboard.press("/")
    page.keyboard.type("who is Rui")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?**")
    expect(page.locator("ol[data-rows] > li").first).to_contain_text("Rui")
    page.locator("ol[data-rows] > li summary").first.click()
    expect(page.locator("ol[data-rows] > li .bars").first).to_contain_text("words")
    expect(page.get_by_role("heading", name="Question", exact=True)).to_be_visible()
    expect(page.locator("aside")).to_contain_text("hits fit better")


def test_a_todo_is_added_done_and_reopened(look: Look) -> None:
    page = look("/u/demo/todos")
    page.get_by_text("Add a todo").click()
    page.get_by_label("Todo", exact=True).fill("Return the library book")
    page.get_by_role("button", name="Add", exact=True).click()
    row = page.locator("li", has_text="Return the library book")
    expect(row).to_be_visible()
    row.get_by_role("button", name=re.compile("^Done")).click()
    expect(page.locator(NOTICE)).to_contain_text("Done.")
    expect(page.locator("li", has_text="Return the library book")).to_have_count(0)
    page.get_by_role("link", name="Closed", exact=True).click()
    page.locator("li", has_text="Return the library book").get_by_role("button", name=re.compile("^Reopen")).click()
    expect(page.locator(NOTICE)).to_contain_text("Reopened")


def test_a_lesson_is_added_pinned_and_edited_in_the_book(look: Look) -> None:
    page = look("/u/demo/lessons")
    page.get_by_text("Add a lesson").click()
    page.get_by_label("Rule", exact=True).fill("Ask before booking anything that cannot be refunded")
    page.locator("main select[name=scope]").select_option("user")
    page.get_by_role("button", name="Add", exact=True).click()
    row = page.locator("li", has_text="cannot be refunded")
    row.get_by_role("button", name=re.compile("^Pin")).click()
    expect(page.locator("li", has_text="cannot be refunded")).to_contain_text("pinned")
    page.get_by_role("link", name="Edit as text").click()
    book = page.locator("textarea[name=text]")
    expect(book).to_have_value(re.compile("cannot be refunded"))
    book.fill(book.input_value() + "\n- Name the price in euros before anything else\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(NOTICE)).to_contain_text("Saved")
    page.get_by_role("link", name="Lessons", exact=True).first.click()
    expect(page.locator("main")).to_contain_text("Name the price in euros")


def test_an_action_that_fails_says_why_and_leaves_what_was_typed(look: Look) -> None:
    page = look("/u/demo/todos", failing=True)
    page.get_by_text("Add a todo").click()
    page.get_by_label("Todo", exact=True).fill("Water the plants")
    page.get_by_label("Repeats (cron)").fill("every now and then")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".notice.bad")).to_contain_text("every now and then")
    expect(page.get_by_label("Todo", exact=True)).to_have_value("Water the plants")


def test_two_names_are_merged_and_taken_apart_again(look: Look) -> None:
    page = look("/u/demo/entities")
    row = page.locator("li", has_text="Are these the same").filter(has_text="Makesh")
    row.get_by_role("button", name=re.compile("^Merge")).click()
    expect(page.locator(NOTICE)).to_contain_text("are one")
    expect(page.locator("aside .card").first).to_contain_text("Makesh")
    page.locator(NOTICE).get_by_role("button", name="Undo").click()
    expect(page.locator(NOTICE)).to_contain_text("undone")
    page.get_by_role("link", name="Entities").first.click()
    expect(page.locator("li", has_text="Are these the same").filter(has_text="Makesh")).to_be_visible()


def test_a_goal_shows_what_would_be_injected_and_why(look: Look) -> None:
    page = look("/u/demo/context?goal=Plan+my+long+run+for+the+Harbour+Half")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("article pre").first).to_contain_text("<memory kind=")
    expect(page.get_by_role("heading", name=re.compile("of 2,000 tokens"))).to_be_visible()
    expect(page.get_by_role("heading", name="Taken")).to_be_visible()
    page.get_by_label("What to show").select_option("context")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("article").first).to_be_visible()


def test_keys_move_through_the_page(look: Look) -> None:
    page = look("/u/demo")
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/memories*")
    page.get_by_role("link", name="List", exact=True).click()
    page.wait_for_url("**/memories?*view=list*")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("ul[data-rows] > li").nth(1)).to_have_class("picked")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/**")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next and previous row")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_theme_is_chosen_and_stays_chosen(look: Look) -> None:
    page = look("/u/demo")
    page.get_by_role("button", name="Light or dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_everything_works_without_scripts(look: Look) -> None:
    page = look("/u/demo/todos", scripts=False)
    page.locator("details.more > summary").click()
    page.get_by_label("Todo", exact=True).fill("Buy stamps")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(NOTICE)).to_contain_text("Added")
    page.locator(NOTICE).get_by_role("button", name="Undo").click()
    expect(page.locator("li", has_text="Buy stamps")).to_have_count(0)
