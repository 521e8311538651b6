"""Calls of the public surface with arguments that mean something: a parameter's name and place tell what it stands for.

A call that is new gets arguments by its types alone, until a rule here says better. All values are JSON, so that a call can be
printed and repeated; a face makes of them what it needs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from proof.crowd import AGENTS, Person

Schema = Mapping[str, Any]
OPTIONAL_SHARE = 0.3
"""How often an argument is given that could be left out."""


class _Left:
    def __repr__(self) -> str:
        return "LEFT_OUT"


LEFT_OUT: Any = _Left()


@dataclass(frozen=True, slots=True, eq=False)
class Param:
    name: str
    schema: Schema
    required: bool
    place: str = ""
    """Where it goes, in the terms of its face."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    face: str
    name: str
    params: tuple[Param, ...]
    handle: Any = None
    """What the face needs to find it again."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of one person, as it can be repeated."""

    person: Person
    agent: str
    channel: str
    operation: Operation
    arguments: dict[str, Any] = field(default_factory=dict)
    stranger: Person | None = None
    """Whom the request names as its user, if not the one whose key it shows."""

    def __repr__(self) -> str:
        named = "" if self.stranger is None else f" naming {self.stranger}"
        at = f"{self.agent}/{self.channel}"
        return f"{self.person} at {at}{named}: {self.operation.face} {self.operation.name} {self.arguments!r:.400}"


Rule = Callable[["Draw"], Any]


@dataclass(slots=True)
class Draw:
    """Draws arguments for one person."""

    chance: random.Random
    person: Person
    now: datetime
    confined: bool = True
    """Whether the face keeps this person from changing what a space shares."""

    def arguments(self, operation: Operation) -> dict[str, Any]:
        found = {}
        place = operation.name.lower()
        for param in operation.params:
            if not param.required and self.chance.random() > OPTIONAL_SHARE:
                continue
            value = self.value(place, param)
            if value is not LEFT_OUT:
                found[param.name] = value
        return found

    def value(self, place: str, param: Param) -> Any:
        where = f"{place}.{param.name.lower()}"
        for pattern, rule in RULES:
            if pattern.search(where):
                drawn = rule(self)
                if drawn is not LEFT_OUT or not param.required:
                    return drawn
        return self.by_schema(param.schema)

    def by_schema(self, schema: Schema) -> Any:
        """Something of that type."""
        chance = self.chance
        if "enum" in schema:
            return chance.choice([one for one in schema["enum"] if one is not None])
        if "const" in schema:
            return schema["const"]
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self.by_schema(next(one for one in schema[several] if one.get("type") != "null"))
        if schema.get("format") == "date-time":
            return self.moment()
        match schema.get("type"):
            case "integer":
                return max(schema.get("minimum", 1), chance.randint(1, 9))
            case "number":
                return chance.choice((0.5, 1.0, 30.0))
            case "boolean":
                return chance.random() < 0.5
            case "array":
                return [self.by_schema(schema.get("items", {})) for _ in range(chance.randint(1, 2))]
            case "object":
                wanted = schema.get("properties", {})
                return (
                    {name: self.value("", Param(name, one, True)) for name, one in wanted.items() if name in schema["required"]}
                    if "required" in schema
                    else {}
                )
            case _:
                return self.text()

    # -- what things are called: mine, everybody's, or somebody else's

    def named(self, common: tuple[str, ...], private: str) -> str:
        luck = self.chance.random()
        if luck < 0.45:
            return self.chance.choice(common)
        whose = self.person if luck < 0.75 or not self.person.victims else self.chance.choice(self.person.victims)
        return private.format(whose.name_mark)

    def id_of(self, kind: str) -> str:
        luck = self.chance.random()
        whose = self.person if luck < 0.6 or not self.person.victims else self.chance.choice(self.person.victims)
        known = whose.held.get(kind) if whose is self.person else whose.to_try(kind)
        return (
            self.chance.choice(known) if known and luck < 0.95 else f"00000000-0000-7000-8000-{self.chance.randrange(50):012x}"
        )

    def state_key(self) -> str:
        return self.named(("units", "notes/today", "a%", "plan"), "k-{}")

    def series(self) -> str:
        return self.named(("steps", "runs"), "s-{}")

    def session(self) -> str:
        return self.chance.choice((self.named(("monday", "tuesday"), "d-{}"), self.id_of("session")))

    def message(self) -> str:
        return self.named(("m0", "m1", "m2", "c0", "m4"), f"m-{{}}-{self.chance.randrange(4)}")

    def memory_key(self) -> str:
        return self.chance.choice(
            (
                self.id_of("memory"),
                self.id_of("memory"),
                self.named(("profile|place|austin|fact",), "people|person|{}|relationship"),
            )
        )

    def entity(self) -> str:
        return self.named(("person:Maria", "place:Austin", "person:Mariah"), "person:{}")

    def text(self) -> str:
        mark, chance = self.person.text_mark, self.chance
        city, who = chance.choice(("Austin", "Boston", "Chicago")), chance.choice(("Maria", "Omar", "Mariah"))
        return chance.choice(
            (
                f"I live in {city} near {mark} street",
                f"{who} from {mark} is my sister",
                f"My favourite food is {mark} soup",
                f"I will call {who} about {mark} tomorrow",
                f"Always answer with {mark} units",
                f"I work on project {mark}",
                f"{who} told me about {mark} yesterday",
                f"I ran 5 km with {who} at {mark}",
                f"Use {mark} for the report",
            )
        )

    def question(self) -> str:
        """May name others' things, never their texts."""
        chance = self.chance
        known = chance.choice((self.person, *self.person.victims))
        return chance.choice(
            (
                "Where do I live?",
                "Who is Maria?",
                "What did I say yesterday?",
                f"What about {known.name_mark}?",
                "my food",
                f"{self.person.text_mark}",
                "steps last week",
                "*",
                "' OR 1=1 --",
                "everything you know about everyone",
            )
        )

    def moment(self) -> str:
        return (self.now - timedelta(hours=self.chance.choice((-30, 0, 1, 20, 48, 200)))).isoformat()

    def pair(self) -> list[str]:
        hours = self.chance.choice((2, 24, 240))
        return [(self.now - timedelta(hours=hours)).isoformat(), (self.now + timedelta(hours=1)).isoformat()]

    def entries(self) -> list[dict[str, Any]]:
        at = self.now - timedelta(hours=self.chance.randrange(48))
        name = self.named(("e1", "e2", "e3"), "e-{}")
        return [{"id": name, "timestamp": at.isoformat(), "sport": self.chance.choice(("run", self.person.text_mark)), "n": 1}]

    def said(self) -> dict[str, Any]:
        made = {"role": "user", "content": self.text()}
        return {**made, "id": self.message()} if self.chance.random() < 0.5 else made

    def lesson_scope(self) -> Any:
        # Whoever is not confined may teach a whole space; that is no leak, and no matter of this crowd.
        return self.chance.choice(("user", "channel", "global", "agent") if self.confined else ("user", "channel"))

    def result(self) -> Any:
        return self.chance.choice((self.entries(), {"note": self.text()}, [self.person.text_mark, "b"], self.text()))


def _left(_: Draw) -> Any:
    return LEFT_OUT


def _rule(pattern: str, make: Rule) -> tuple[re.Pattern[str], Rule]:
    return re.compile(pattern), make


RULES = (
    _rule(r"import.*\.source$", lambda d: {"as": d.chance.choice(d.person.victims).user}),
    _rule(r"import.*\.(replace|dry_run)$", lambda d: d.chance.random() < 0.5),
    _rule(r"import.*\.format$|export\.format$", _left),
    _rule(r"task.*\.progress$", lambda _: 0.5),
    _rule(r"\.(limit|n|days|keep|neighbours)$", lambda d: d.chance.choice((1, 3, 20, 100))),
    _rule(r"\.(budget_tokens|budget)$", lambda d: d.chance.choice((200, 2_000))),
    # Never by the clock of this machine: a call that ran out of time would answer otherwise when it is repeated.
    _rule(r"\.(deadline_s|deadline)$", lambda _: 60.0),
    _rule(r"\.(wait_s|lease_s|join_gaps_s|longest_s)$", lambda _: 5.0),
    _rule(r"\.(progress|replace|follow|everybody|everywhere_all|all|poll|settles_after_s|max_entries|keep_days)$", _left),
    _rule(r"(series|timeseries).*\.keep_days$", lambda _: 90),
    _rule(r"lesson.*\.(agent|agent_book)$", _left),
    _rule(r"lesson.*\.scope$", lambda d: d.lesson_scope()),
    _rule(r"\.profile$", lambda d: d.chance.choice(("hermes", "default", "none"))),
    _rule(r"\.visible_to$", lambda d: d.chance.choice(AGENTS)),
    _rule(r"\.(id_field|timestamp_field|id_template|timestamp)$", _left),
    _rule(r"\.zone$", lambda _: "Europe/Berlin"),
    _rule(r"\.(style)$", lambda _: "openai"),
    _rule(r"\.if-(none-)?match$", _left),
    _rule(r"\.idempotency-key$", lambda d: d.named(("again", "once"), "once-{}")),
    _rule(r"tool[_ /].*\.(name|tool)$|tool call\.name$", lambda d: d.chance.choice(("saveState", "loadState"))),
    _rule(r"(call_tool|tool call|/tools/).*\.params$", lambda d: {"key": d.state_key(), "value": d.text()}),
    _rule(r"(after|accept|aftertool).*\.tool$", lambda d: d.chance.choice(("getRuns", "getKudos"))),
    _rule(r"\.(result)$", lambda d: d.result()),
    _rule(r"\.(suggested|digest|fetcher|agent|tools)$", lambda _: None),
    _rule(r"(series|timeseries).*\.(key|state_key|series|name)$", lambda d: d.series()),
    _rule(r"series.*\.(id|entry)$", lambda d: d.named(("e1", "e2"), "e-{}")),
    _rule(r"\.(entries|new_entries)$", lambda d: d.entries()),
    _rule(r"\.(field)$", lambda _: "sport"),
    _rule(r"\.window$", lambda d: d.pair()),
    _rule(r"\.(kind|type)$|\.kinds$", lambda d: LEFT_OUT),
    _rule(r"\.(corrects|ended|behind|options|page|coverage|fresh_for_s|infer|request|api_calls|by_first_seen)$", _left),
    _rule(r"(memor|pin|archive|restore).*\.(key)$|forget\.memory$|^(get|pin|archive)memory.*\.key$", lambda d: d.memory_key()),
    _rule(r"state.*\.(key)$", lambda d: d.state_key()),
    _rule(r"state.*\.pattern$", lambda d: d.chance.choice(("*", "k-*", "%", "_nits", "**"))),
    _rule(r"state.*\.value$", lambda d: d.chance.choice((d.text(), {"note": d.text()}, 3))),
    _rule(r"state.*\.(expected|revision|expires_in_s|expires_in)$", lambda d: d.chance.choice((1, 2, LEFT_OUT))),
    _rule(r"(entit|merge|alias).*\.(ref|into)$|\.(entity|subject)$", lambda d: d.entity()),
    _rule(r"\.entities$", lambda d: [d.entity()]),
    _rule(r"\.label$|alias\.name$", lambda d: d.named(("Mia", "Molly"), "Nick {}")),
    _rule(r"\.suggestion$", lambda d: d.id_of("suggestion")),
    _rule(r"\.(todo)$", lambda d: d.id_of("todo")),
    _rule(r"\.(task)$", lambda d: d.id_of("task")),
    _rule(r"(lesson.*\.(id|lesson))$", lambda d: d.id_of("lesson")),
    _rule(r"(instruction.*\.(id|instruction))$", lambda d: d.id_of("instruction")),
    _rule(r"decisions.*\.before$", lambda d: d.id_of("decision")),
    _rule(r"(batch|append_many).*\.messages$", lambda d: [d.said() for _ in range(d.chance.randint(1, 3))]),
    _rule(r"forget.*\.messages$", lambda d: [d.message(), d.message()]),
    _rule(r"\.(message|first|last|first_message|last_message|tool_call_id)$|(append|message).*\.id$", lambda d: d.message()),
    _rule(r"accesses.*\.before$", lambda d: d.id_of("access")),
    _rule(r"remember_many.*\.statements$", lambda d: [{"content": d.text()} for _ in range(d.chance.randint(1, 3))]),
    _rule(r"correct.*\.statement$", _left),
    _rule(r"(journal|history|changes).*\.before$|\.operation$", lambda d: d.chance.randint(1, 60)),
    _rule(r"transcript.*\.before$", lambda d: d.moment()),
    _rule(r"\.(before|after)$", lambda d: d.message()),
    _rule(r"session.*\.id$|\.session$", lambda d: d.session()),
    _rule(r"\.sessions$", lambda d: [d.session()]),
    _rule(r"\.cursor$", lambda d: d.id_of("cursor")),
    _rule(r"\.version$", lambda d: d.chance.choice((1, 1, 2))),
    _rule(r"\.number$", lambda d: d.chance.randint(1, 4)),
    _rule(r"\.period$", lambda d: d.chance.choice(("hour", "day", "week"))),
    _rule(r"\.source$", lambda d: d.chance.choice(("import", "team"))),
    _rule(r"\.((window_)?(start|end)(_time)?|since|until|as_of|known_at|due(_at|_before)?|valid_from)$", lambda d: d.moment()),
    _rule(r"(append|message).*\.at$", _left),
    _rule(r"\.(tokens|metadata|tool_calls|failed|tool_call)$", _left),
    _rule(r"\.role$", lambda d: d.chance.choice(("user", "user", "assistant"))),
    _rule(r"\.(query|question|goal|request)$", lambda d: d.question()),
    _rule(r"\.(recurrence)$", lambda _: LEFT_OUT),
    _rule(r"\.(importance)$", lambda d: d.chance.randint(1, 3)),
    _rule(r"\.(confidence|progress)$", lambda _: 0.5),
    _rule(r"\.attribute$", lambda d: d.chance.choice(("lives_in", "favourite_food"))),
    _rule(r"\.(value|content|text|description|reply|was)$", lambda d: d.text()),
    _rule(r"\.export$", lambda d: '[{"memory": "Lives in ' + d.person.text_mark + '", "id": "1"}]'),
    _rule(r"\.(file)$", lambda _: "-"),
)
"""What a parameter stands for, by `operation.parameter` in lower case. The first that fits counts."""
