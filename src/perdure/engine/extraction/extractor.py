"""The extractor that needs no model: what the user's own words say, by rules, rather too little than wrong.

The rules are English. A message is cut to what its writer states (`own_words`), into clauses with a certain subject
(`clauses`), and each is held against tables: `predicates`, `facts`, `intents`, whose words and patterns are in `en.toml`. What
is said of times is resolved by `mentions` against the time of the message. Of sentences that no rule reads, in four languages,
those that tell something lasting are proposed in the user's own words (`verbatim`). Deciding what becomes of a proposal is left
to others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from perdure.domain.conversation.messages import Message
from perdure.domain.knowledge.memories import trust_of_message
from perdure.domain.knowledge.proposals import EntityName, Evidence, Extraction, ExtractionRequest, Proposal, TodoProposal
from perdure.engine.extraction.clauses import (
    MentionedPerson,
    People,
    corrected,
    is_corrective,
    people_in,
    recent_of,
    takes_back_all,
)
from perdure.engine.extraction.facts import (
    StatedFact,
    bare_pets,
    deadline_of,
    deadlines,
    find_possessions,
    find_projects,
    find_relations,
    person_name,
)
from perdure.engine.extraction.intents import Intent, as_completion, as_promise, completes, find_completions, find_intents
from perdure.engine.extraction.orders import standing_instructions
from perdure.engine.extraction.patterns import pattern, words
from perdure.engine.extraction.predicates import bounded_importance, speaks_of_health
from perdure.engine.extraction.statements import denies, denies_after, statements_of
from perdure.engine.extraction.verbatim import OwnWords, lasting_words, left_of, turning_words
from perdure.engine.text.own_words import OWN_CHARS_MAX, is_unsure, opens_fiction, own_words, states_nothing, takes_back
from perdure.engine.text.sentences import SENTENCE_CHARS_MAX, sentence_spans
from perdure.engine.times.mentions import TimeMention, find_times

TURN_CHARS_MAX = 280
TURN_WORDS_MAX = 30
"""In a message of no more than this, a change is judged by all that it says; in a longer one, sentence by sentence."""
HISTORY_MAX = 12
"""Statements that a correction may reach back to."""


class RuleExtractor:
    """An `Extractor` that needs no model: the same request gives the same answer."""

    name = "rules/1"

    def __init__(self, *, own_words: bool = True) -> None:
        """`own_words`: also propose sentences as they were said where no rule reads them."""
        self._own_words = own_words

    def extract(self, request: ExtractionRequest) -> Extraction:
        """Proposals from what the user says in `messages`. Never raises because of a text."""
        run = _Run(request, own_words=self._own_words)
        for message in request.before:
            run.read(message, keep=False)
        for message in request.messages:
            run.read(message, keep=True)
        return Extraction(tuple(run.proposals), tuple(run.todos), run.skipped, orders=tuple(run.orders))


class _Run:
    """One pass over a conversation."""

    def __init__(self, request: ExtractionRequest, *, own_words: bool) -> None:
        self.own_words = own_words
        self.zone = request.zone
        self.proposals: list[Proposal] = []
        self.todos: list[TodoProposal] = []
        self.orders: list[Evidence] = []
        self.skipped = 0
        self.people = People()
        self.orgs = {entity.label.casefold() for entity in request.known if entity.type == "org"}
        self.said: list[StatedFact] = []
        self.last: list[StatedFact] = []
        self.open: list[Intent] = []
        self.mark = (0, 0, 0)
        self.turned: set[tuple[str, str]] = set()
        self.playing = False
        self.about_work = False
        self.doubted: list[tuple[StatedFact, int]] = []
        for entity in request.known:
            if entity.type == "person":
                self.people.add(MentionedPerson(entity.label))

    def read(self, message: Message, *, keep: bool) -> None:
        """Take in one message; `keep` what it says, or only remember it for what follows."""
        if message.role != "user":
            self._overhear(message.content[:OWN_CHARS_MAX])
            return
        text = own_words(message.content)
        self.playing = self.playing and not pattern("serious").search(text)
        times = [one for one in find_times(text, message.at, self.zone) if not one.vague]
        self.about_work = bool(pattern("work").search(text))
        for start, end in _whole_sentences(text, sentence_spans(text)):
            sentence = text[start:end]
            if self.playing:
                self.skipped += keep and bool(pattern("fact_like").search(sentence))
                continue
            here = [replace(one, start=one.start - start, end=one.end - start) for one in times if start <= one.start < end]
            before = self._count()
            self._sentence(sentence, here, message, start if keep else None)
            if keep and self.own_words and trust_of_message(message.role, message.metadata) == "user":
                said = text.strip() if _is_short(text) and "?" not in text else sentence
                if before == self._count():
                    self._keep_words(sentence, said, here, message, start)
                else:
                    found = self.proposals[before[0] :]
                    if found and turning_words(sentence) is not None:
                        self.proposals[before[0]] = replace(found[0], turn=self._once(said, message))
                    self._keep_rest(sentence, before, here, message, start)
                    told = self.proposals[before[0] :]
                    if found and speaks_of_health(sentence) and not any(speaks_of_health(one.content) for one in told):
                        self._keep_words(sentence, said, here, message, start, about=found)
            self.mark = before if self._count() != before else self.mark
            self.playing = opens_fiction(sentence)
        self._retract(message, keep=keep)

    def _count(self) -> tuple[int, int, int]:
        """How much was found so far."""
        return len(self.proposals), len(self.todos), len(self.orders)

    def _once(self, said: str, message: Message) -> str | None:
        """The words that may change what is known, the first time they are met in a message: they change one thing."""
        if (message.id, said) in self.turned:
            return None
        self.turned.add((message.id, said))
        return said

    def _keep_words(
        self,
        sentence: str,
        said: str,
        times: list[TimeMention],
        message: Message,
        offset: int,
        about: Sequence[Proposal] = (),
    ) -> None:
        """Propose a sentence that no rule reads as it stands, if it tells something that lasts or may change what is known.

        `said`: what it is part of, by which a change is judged. `about`: what rules have read of it besides; it is about the
        person that they name.
        """
        lasting, turns = lasting_words(sentence), turning_words(sentence)
        turning = None if turns is None else self._once(said, message)
        kept = lasting or (turns if turning else None)
        if kept is not None and not _is_order(message.content, offset, offset + len(sentence)):
            self._keep(sentence, kept, times, message, offset, turning=turning, fleeting=lasting is None, about=about)

    def _keep_rest(
        self, sentence: str, before: tuple[int, int, int], times: list[TimeMention], message: Message, offset: int
    ) -> None:
        """Propose what of the user rules left of a sentence that they read in part, if it tells something that lasts."""
        found = self.proposals[before[0] :]
        if states_nothing(sentence) is not None or any(one.subject is not None or one.corrects for one in found):
            return
        places = [place for one in found for place in one.evidence] + self.orders[before[2] :]
        places += [place for todo in self.todos[before[1] :] for place in todo.evidence]
        read = [(place.start - offset, place.end - offset) for place in places]
        for start, end in left_of(sentence, read):
            kept = lasting_words(sentence[start:end], rest=True)
            if kept is not None and kept.kind != "todo" and not _is_order(message.content, offset + start, offset + end):
                here = [replace(one, start=one.start - start, end=one.end - start) for one in times if start <= one.start < end]
                self._keep(sentence[start:end], kept, here, message, offset + start)

    def _keep(
        self,
        sentence: str,
        kept: OwnWords,
        times: list[TimeMention],
        message: Message,
        offset: int,
        *,
        turning: str | None = None,
        fleeting: bool = False,
        about: Sequence[Proposal] = (),
    ) -> None:
        content, place = sentence[kept.start : kept.end], _evidence(message, offset, kept.start, kept.end)
        if kept.kind == "rule" and kept.sure:
            self.orders.append(place)
        elif kept.kind == "todo" and kept.sure:
            self.todos.append(_promised(content, times, message, place))
        else:
            people = {entity for one in about for entity in one.entities if entity.type == "person"}
            self.proposals.append(
                Proposal(
                    type="PEOPLE" if len(people) == 1 else "PROFILE",
                    fact_type="fact" if people else kept.fact_type,
                    content=content,
                    entities=tuple(people) if len(people) == 1 else (),
                    evidence=(place,),
                    confidence=0.7,
                    importance=bounded_importance(kept.importance, None, "fact", content, of_user=True),
                    own_words=True,
                    turn=turning,
                    fleeting=fleeting,
                )
            )

    def _overhear(self, text: str) -> None:
        """What others say is no evidence, but whom they name may be whom the next pronoun means."""
        for match in pattern("any_name").finditer(text):
            name = person_name(match["name"])
            held = self.people.labelled(name) if name else ()
            if held:
                self.people.notice(held[-1])

    def _retract(self, message: Message, *, keep: bool) -> None:
        """Take back what a sentence called wrong, if none after it said what is right."""
        for fact, offset in self.doubted:
            if keep:
                self._propose(replace(fact, ended=True, corrects=True), [], message, offset)
        self.doubted = []

    def _sentence(self, sentence: str, times: list[TimeMention], message: Message, offset: int | None) -> None:
        if takes_back(sentence):
            del self.proposals[self.mark[0] :]
            del self.todos[self.mark[1] :]
            del self.orders[self.mark[2] :]
            return
        stated = list(self._stated(sentence, times, keep=offset is not None))
        if takes_back_all(sentence) and not stated:
            self.doubted = [(replace(one, start=0, end=len(sentence)), offset or 0) for one in self.last]
        elif stated and self.doubted:
            wrong = {one.attribute for one, _ in self.doubted}
            stated = [replace(one, corrects=one.corrects or one.attribute in wrong) for one in stated]
            self.doubted = []
        for one in stated:
            who = one.subject
            if who is not None and who.type == "person" and not self.people.labelled(who.label):
                self.people.add(MentionedPerson(who.label, who.label.lower(), named=who.label[:1].isupper()))
        named = people_in(sentence, self.people)
        if named:
            self.people.recent, self.people.strangers = recent_of([person for _, person in named])
        if stated:
            self.last = stated
            self.said = [*self.said, *stated][-HISTORY_MAX:]
            self.orgs.update(one.value.casefold() for one in stated if one.attribute == "works_at")
        intents = list(self._intents(sentence, times, message.at))
        self.open = [*self.open, *(one for one in intents if not one.done)][-HISTORY_MAX:]
        if offset is None:
            return
        for one in stated:
            self._propose(one, times, message, offset, sentence)
        for intent in intents:
            evidence = (_evidence(message, offset, intent.start, intent.end),)
            self.todos.append(
                TodoProposal(
                    kind=intent.kind,
                    content=intent.content,
                    due_at=intent.due_at,
                    time_words=intent.time_words,
                    recurrence=intent.recurrence,
                    done=intent.done,
                    evidence=evidence,
                    confidence=intent.confidence,
                )
            )

    def _stated(self, sentence: str, times: list[TimeMention], *, keep: bool) -> Iterator[StatedFact]:
        right = corrected(sentence, self.last) or corrected(sentence, self.said)
        if right is not None:
            yield right
            return
        if states_nothing(sentence) or is_unsure(sentence):
            self.skipped += keep and bool(pattern("fact_like").search(sentence))
            return
        yield from self._facts(sentence, times)

    def _facts(self, sentence: str, times: list[TimeMention]) -> Iterator[StatedFact]:
        seen: set[tuple[str | None, str, EntityName | None]] = set()
        for one in self._all(sentence, times):
            key = (one.attribute, one.value.casefold(), one.subject)
            if key not in seen:
                seen.add(key)
                yield replace(one, corrects=one.corrects and (self._said_before(one) or denies(sentence)))

    def _said_before(self, fact: StatedFact) -> bool:
        """Whether the user told the same of the same subject: else a `no` answers somebody's question."""
        return any((one.attribute, one.subject) == (fact.attribute, fact.subject) for one in self.said)

    def _all(self, sentence: str, times: list[TimeMention]) -> Iterator[StatedFact]:
        for relation in find_relations(sentence):
            if not relation.pet:
                self.people.add(MentionedPerson(relation.name, relation.relation, title=relation.title))
            yield relation.stated
        for pet, start, end in bare_pets(sentence):
            yield StatedFact("has_pet", pet, f"Has {pet}", start, end)
        for one in find_possessions(sentence):
            yield replace(one, corrects=one.corrects or is_corrective(sentence[: one.start]) or denies_after(sentence, one.end))
        yield from find_projects(sentence)
        for name, start, where in deadlines(sentence):
            when = next((one for one in times if one.start <= where + 4 and one.end > where), None)
            if when:
                yield deadline_of(name, re.sub(r"(?i)^(?:due )?(?:on |by )?", "", when.words), start, when.end)
        left = pattern("left_org").search(sentence)
        if left and (left["org"].casefold() in self.orgs or self.about_work):
            yield self._employer(left["org"], left, "org", ended=True)
            if left["next"] and left["org"].casefold() in self.orgs:
                yield self._employer(left["next"], left, "next")
        clauses, unclear = statements_of(sentence, times, self.people)
        self.skipped += unclear
        moved = pattern("moved_org").search(sentence)
        if moved is None or moved["org"].casefold() not in self.orgs:
            yield from clauses
            return
        # Who moves from a company moves to another one, not to a place of that name.
        yield self._employer(moved["org"], moved, "org", ended=True)
        yield self._employer(moved["next"], moved, "next")
        yield from (one for one in clauses if one.attribute != "lives_in")

    def _employer(self, name: str, match: re.Match[str], group: str, *, ended: bool = False) -> StatedFact:
        org = EntityName("org", name)
        return StatedFact(
            attribute="works_at",
            value=org.label,
            content=f"Works at {org.label}",
            start=match.start(),
            end=match.end(group),
            entities=(org,),
            ended=ended,
            changed=True,
            importance=2,
        )

    def _intents(self, sentence: str, times: list[TimeMention], now: datetime) -> Iterator[Intent]:
        why = states_nothing(sentence)
        if why in ("secret", "hidden", "fiction", "joke"):
            return
        if why == "hypothetical" and not pattern("still_intends").search(sentence):
            return
        found = list(find_intents(sentence, times, now, asks=why in ("question", "instruction")))
        yield from found
        if why is None and not found:
            yield from self._completions(sentence)

    def _completions(self, sentence: str) -> Iterator[Intent]:
        for done in find_completions(sentence):
            held = next((one for one in reversed(self.open) if completes(done, one)), None)
            if held is not None:
                self.open.remove(held)
                yield replace(held, start=done.start, end=done.end, due_at=None, time_words=None, done=True, confidence=0.85)
                return
            alone = as_completion(done)
            if alone is not None:
                yield alone
                return

    def _propose(self, fact: StatedFact, times: list[TimeMention], message: Message, offset: int, sentence: str = "") -> None:
        when = _time_of(fact, times, sentence)
        valid_from: datetime | None = None
        if when is not None and (when.kind == "since" or (fact.changed and when.kind in ("point", "span"))):
            valid_from = when.first
        self.proposals.append(
            Proposal(
                type=fact.type,
                fact_type=fact.fact_type,
                content=fact.content,
                entities=fact.entities,
                subject=fact.subject,
                attribute=fact.attribute,
                value=fact.value,
                evidence=(_evidence(message, offset, fact.start, fact.end),),
                confidence=fact.confidence,
                importance=bounded_importance(
                    fact.importance, fact.attribute, fact.fact_type, fact.content, of_user=fact.subject is None
                ),
                valid_from=valid_from,
                time_words=when.words if when else None,
                ended=fact.ended,
                corrects=fact.corrects,
            )
        )


def _is_short(text: str) -> bool:
    return len(text) <= TURN_CHARS_MAX and len(text.split()) <= TURN_WORDS_MAX


def _whole_sentences(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Sentences, with those made one that only a name with dots had parted: `J.P. Morgan`, `Mt. Vernon`."""
    held: tuple[int, int] | None = None
    for start, end in spans:
        if (
            held
            and start - held[1] == 1
            and end - held[0] < SENTENCE_CHARS_MAX
            and pattern("dotted").search(text, held[0], held[1])
        ):
            word = re.match(r"\w+", text[start : start + 40])
            if word and word[0][0].isupper() and word[0] not in words("NO_NAMES"):
                held = (held[0], end)
                continue
        if held:
            yield held
        held = (start, end)
    if held:
        yield held


def _time_of(fact: StatedFact, times: list[TimeMention], sentence: str) -> TimeMention | None:
    """The time that belongs to a statement: the first behind its words, within reach, else the one just before them."""
    if fact.attribute in ("birthday", "birth_year", "age") or (fact.fact_type == "relationship" and not fact.changed):
        return None
    inside = [
        one
        for one in times
        if fact.start <= one.start <= fact.end + 24 and not pattern("parted").search(sentence[fact.end : one.start])
    ]
    if inside:
        return inside[0]
    ahead = [one for one in times if one.end <= fact.start and fact.start - one.end <= 3]
    return ahead[-1] if ahead else None


def _is_order(text: str, start: int, end: int) -> bool:
    """Whether the sentence there was taken in with its message, as a standing instruction or the end of one."""
    return any(one.start < end and start < one.end for one in standing_instructions(text))


def _promised(content: str, times: list[TimeMention], message: Message, place: Evidence) -> TodoProposal:
    intent = as_promise(content, times, message.at)
    return TodoProposal(
        kind=intent.kind,
        content=intent.content,
        due_at=intent.due_at,
        time_words=intent.time_words,
        recurrence=intent.recurrence,
        evidence=(place,),
        confidence=0.7,
        own_words=True,
    )


def _evidence(message: Message, offset: int, start: int, end: int) -> Evidence:
    return Evidence(message.id, offset + start, offset + end, message.at)
