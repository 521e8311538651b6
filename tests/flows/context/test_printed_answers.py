"""What a call answers can be printed and read; the fields are there for programs."""

from __future__ import annotations

import perdure


def test_answers_print_as_what_they_say(tmp_path):
    with perdure.open(tmp_path / "printed.db") as engine:
        ana = engine.memory(user="ana", agent="coach")
        assert str(ana.append("user", "I'll call Maria tomorrow.")) == "user: I'll call Maria tomorrow."
        assert str(ana.remember("Lives in Lisbon")) == "added: Lives in Lisbon"
        assert str(ana.remember("Lives in Porto")) == "superseded: Lives in Porto\n  no longer: Lives in Lisbon"
        assert [str(one) for one in ana.memories.list()] == ["Lives in Porto"]
        assert [str(one) for one in ana.todos.list()] == ["Call Maria"]
        context = ana.context("Where do I live?")
        assert str(context) == context.text
        injection = ana.before("Where do I live?")
        assert str(injection) == injection.text


def test_a_recall_is_read_like_a_list_and_printed_in_lines(tmp_path):
    with perdure.open(tmp_path / "printed.db") as engine:
        ana = engine.memory(user="ana")
        empty = ana.recall("Where do I live?")
        assert (len(empty), list(empty), str(empty)) == (0, [], "No results.")
        ana.remember("Lives in Porto")
        found = ana.recall("Where do I live?")
        assert [hit.text for hit in found] == ["Lives in Porto"]
        assert len(found) == 1
        assert str(found).startswith("1. Lives in Porto (20")
        assert "score" in str(found)
