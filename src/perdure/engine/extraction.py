"""The extractor that needs no model: what the user's own words say, by rules, rather too little than wrong.

English. A message is cut to what its writer states (`ownwords`), into clauses with a certain subject (`clauses`), and
each is held against tables: `predicates`, `relations`, `possessions`, `commitments`. What is said of times is resolved by
`timewords` against the time of the message. Deciding what becomes of a proposal is left to others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from perdure.domain.knowledge import EntityName, Evidence, Extraction, ExtractionRequest, Proposal, TodoProposal
from perdure.domain.messages import Message
from perdure.engine.attributes import SINGLE_VALUED, is_single_valued
from perdure.engine.clauses import Cast, Person, is_corrective, people_in, recent_of
from perdure.engine.commitments import Intent, as_completion, completes, find_completions, find_intents
from perdure.engine.corrections import corrected, takes_back_all
from perdure.engine.factwords import NAME, NOT_NAMES, person_name
from perdure.engine.ownwords import OWN_CHARS_MAX, is_unsure, opens_fiction, own_words, states_nothing, takes_back
from perdure.engine.possessions import Told, deadline_of, deadlines, find_possessions, find_projects
from perdure.engine.relations import bare_pets, find_ties
from perdure.engine.sentences import SENTENCE_CHARS_MAX, sentence_spans
from perdure.engine.statements import denies, denies_after, statements_of
from perdure.engine.timewords import TimeMention, find_times

__all__ = ["SINGLE_VALUED", "RuleExtractor", "is_single_valued"]

HISTORY_MAX = 12
"""Statements that a correction may reach back to."""


class RuleExtractor:
    """An `Extractor` of rules alone: the same request gives the same answer."""

    name = "rules/1"

    def extract(self, request: ExtractionRequest) -> Extraction:
        """Proposals from what the user says in `messages`. Never raises because of a text."""
        run = _Run(request)
        for message in request.before:
            run.read(message, keep=False)
        for message in request.messages:
            run.read(message, keep=True)
        return Extraction(tuple(run.proposals), tuple(run.todos), run.skipped)


_FACT_LIKE = re.compile(r"\b(?:i|i['’]m|my|we|our|me|he|she|lives?|works?|is my)\b", re.IGNORECASE)
_STILL_INTENDS = re.compile(
    r"^\W*(?:maybe|perhaps|one day|some ?day|hopefully|at some point|i['’]d (?:like|love) to)\b", re.IGNORECASE
)
_SERIOUS = re.compile(
    r"\b(?:stop pretending|end (?:of )?(?:the )?(?:scene|story|game)|out of character|for real|"
    r"seriously|back to reality|anyway|new topic)\b",
    re.IGNORECASE,
)
_WORK = re.compile(
    r"\b(?:jobs?|work|works|working|employer|company|position|role|boss|manager|hired|offer|colleagues|team|career|notice)\b",
    re.IGNORECASE,
)
_LEFT = re.compile(
    r"\b(?:I|i)(?:['’]ve| have)?(?: just| recently| finally)? (?:left|quit) (?P<org>[A-Z0-9][\w&+-]*(?: [A-Z][\w&+-]*){0,3})"
)


class _Run:
    """One pass over a conversation."""

    def __init__(self, request: ExtractionRequest) -> None:
        self.zone = request.zone
        self.proposals: list[Proposal] = []
        self.todos: list[TodoProposal] = []
        self.skipped = 0
        self.cast = Cast()
        self.orgs = {entity.label.casefold() for entity in request.known if entity.type == "org"}
        self.said: list[Told] = []
        self.last: list[Told] = []
        self.open: list[Intent] = []
        self.mark = (0, 0)
        self.playing = False
        self.about_work = False
        self.doubted: list[tuple[Told, int]] = []
        for entity in request.known:
            if entity.type == "person":
                self.cast.add(Person(entity.label))

    def read(self, message: Message, *, keep: bool) -> None:
        """Take in one message; `keep` what it says, or only remember it for what follows."""
        if message.role != "user":
            self._overhear(message.content[:OWN_CHARS_MAX])
            return
        text = own_words(message.content)
        self.playing = self.playing and not _SERIOUS.search(text)
        times = find_times(text, message.at, self.zone)
        self.about_work = bool(_WORK.search(text))
        for start, end in _whole(text, sentence_spans(text)):
            sentence = text[start:end]
            if self.playing:
                self.skipped += keep and bool(_FACT_LIKE.search(sentence))
                continue
            here = [replace(one, start=one.start - start, end=one.end - start) for one in times if start <= one.start < end]
            before = (len(self.proposals), len(self.todos))
            self._sentence(sentence, here, message, start if keep else None)
            self.mark = before if (len(self.proposals), len(self.todos)) != before else self.mark
            self.playing = opens_fiction(sentence)
        self._retract(message, keep=keep)

    def _overhear(self, text: str) -> None:
        """What others say is no evidence, but whom they name may be whom the next pronoun means."""
        for match in _ANY_NAME.finditer(text):
            name = person_name(match["name"])
            held = self.cast.people.get(name.casefold(), []) if name else []
            if held:
                self.cast.notice(held[-1])

    def _retract(self, message: Message, *, keep: bool) -> None:
        """Take back what a sentence called wrong, if none after it said what is right."""
        for told, offset in self.doubted:
            if keep:
                self._propose(replace(told, ended=True, corrects=True), [], message, offset)
        self.doubted = []

    def _sentence(self, sentence: str, times: list[TimeMention], message: Message, offset: int | None) -> None:
        if takes_back(sentence):
            del self.proposals[self.mark[0] :]
            del self.todos[self.mark[1] :]
            return
        told = list(self._told(sentence, times, keep=offset is not None))
        if takes_back_all(sentence) and not told:
            self.doubted = [(replace(one, start=0, end=len(sentence)), offset or 0) for one in self.last]
        elif told and self.doubted:
            wrong = {one.attribute for one, _ in self.doubted}
            told = [replace(one, corrects=one.corrects or one.attribute in wrong) for one in told]
            self.doubted = []
        for one in told:
            if (
                one.subject is not None
                and one.subject.type == "person"
                and one.subject.label.casefold() not in self.cast.people
            ):
                self.cast.add(Person(one.subject.label, one.subject.label.lower(), named=one.subject.label[:1].isupper()))
        named = people_in(sentence, self.cast)
        if named:
            self.cast.recent, self.cast.strangers = recent_of([person for _, person in named])
        if told:
            self.last = told
            self.said = [*self.said, *told][-HISTORY_MAX:]
            self.orgs.update(one.value.casefold() for one in told if one.attribute == "works_at")
        intents = list(self._intents(sentence, times, message.at))
        self.open = [*self.open, *(one for one in intents if not one.done)][-HISTORY_MAX:]
        if offset is None:
            return
        for one in told:
            self._propose(one, times, message, offset, sentence)
        for intent in intents:
            evidence = (_evidence(message, offset, intent.start, intent.end),)
            self.todos.append(
                TodoProposal(
                    intent.kind,
                    intent.content,
                    intent.due_at,
                    intent.time_words,
                    intent.recurrence,
                    intent.done,
                    evidence,
                    intent.confidence,
                )
            )

    def _told(self, sentence: str, times: list[TimeMention], *, keep: bool) -> Iterator[Told]:
        right = corrected(sentence, self.last) or corrected(sentence, self.said)
        if right is not None:
            yield right
            return
        if states_nothing(sentence) or is_unsure(sentence):
            self.skipped += keep and bool(_FACT_LIKE.search(sentence))
            return
        yield from self._facts(sentence, times)

    def _facts(self, sentence: str, times: list[TimeMention]) -> Iterator[Told]:
        seen: set[tuple[str | None, str, EntityName | None]] = set()
        for one in self._all(sentence, times):
            key = (one.attribute, one.value.casefold(), one.subject)
            if key not in seen:
                seen.add(key)
                yield replace(one, corrects=one.corrects and (self._said_before(one) or denies(sentence)))

    def _said_before(self, told: Told) -> bool:
        """Whether the user told the same of the same subject: else a `no` answers somebody's question."""
        return any((one.attribute, one.subject) == (told.attribute, told.subject) for one in self.said)

    def _all(self, sentence: str, times: list[TimeMention]) -> Iterator[Told]:
        for tie in find_ties(sentence, self.cast):
            who = EntityName("person", tie.name)
            if tie.pet:
                words = f"Has a {tie.relation} named {tie.name}"
                yield Told("has_pet", tie.name, words, tie.start, tie.end, ended=tie.ended, changed=tie.ended)
            elif tie.attribute == "relation":
                yield Told(
                    "relation",
                    tie.relation,
                    tie.content,
                    tie.start,
                    tie.end,
                    "PEOPLE",
                    "relationship",
                    (who,),
                    who,
                    ended=tie.ended,
                )
            else:
                yield Told(
                    tie.attribute,
                    tie.name,
                    tie.content,
                    tie.start,
                    tie.end,
                    "PEOPLE",
                    "relationship",
                    (who,),
                    importance=2,
                    ended=tie.ended,
                    changed=True,
                )
        for pet, start, end in bare_pets(sentence):
            yield Told("has_pet", pet, f"Has {pet}", start, end)
        for one in find_possessions(sentence):
            yield replace(one, corrects=one.corrects or is_corrective(sentence[: one.start]) or denies_after(sentence, one.end))
        yield from find_projects(sentence)
        for name, start, where in deadlines(sentence):
            when = next((one for one in times if one.start <= where + 4 and one.end > where), None)
            if when:
                yield deadline_of(name, re.sub(r"(?i)^(?:due )?(?:on |by )?", "", when.words), start, when.end)
        left = _LEFT.search(sentence)
        if left and (left["org"].casefold() in self.orgs or self.about_work):
            org = EntityName("org", left["org"])
            yield Told(
                "works_at",
                org.label,
                f"Works at {org.label}",
                left.start(),
                left.end(),
                entities=(org,),
                ended=True,
                changed=True,
                importance=2,
            )
        clauses, unclear = statements_of(sentence, times, self.cast)
        self.skipped += unclear
        yield from clauses

    def _intents(self, sentence: str, times: list[TimeMention], now: datetime) -> Iterator[Intent]:
        why = states_nothing(sentence)
        if why in ("secret", "hidden", "fiction", "joke"):
            return
        if why == "hypothetical" and not _STILL_INTENDS.search(sentence):
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

    def _propose(self, told: Told, times: list[TimeMention], message: Message, offset: int, sentence: str = "") -> None:
        when = _time_of(told, times, sentence)
        valid_from: datetime | None = None
        if when is not None and (when.kind == "since" or (told.changed and when.kind in ("point", "span"))):
            valid_from = when.first
        self.proposals.append(
            Proposal(
                told.type,
                told.fact_type,
                told.content,
                told.entities,
                told.subject,
                told.attribute,
                told.value,
                (_evidence(message, offset, told.start, told.end),),
                told.confidence,
                told.importance,
                valid_from,
                when.words if when else None,
                told.ended,
                told.corrects,
            )
        )


_DOTTED = re.compile(r"(?<![\w.])(?!U\.S\.|U\.K\.|D\.C\.)(?:(?:[A-Z]\.){2,4}|(?:Mt|Ft|Ste)\.)$")
_APART = re.compile(r"[,;:]|\b(?:but|and)\b")
_ANY_NAME = re.compile(rf"(?<![\w’'.-])(?P<name>{NAME})")


def _whole(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Sentences, with those made one that only a name with dots had parted: `J.P. Morgan`, `Mt. Vernon`."""
    held: tuple[int, int] | None = None
    for start, end in spans:
        if held and start - held[1] == 1 and end - held[0] < SENTENCE_CHARS_MAX and _DOTTED.search(text, held[0], held[1]):
            word = re.match(r"\w+", text[start : start + 40])
            if word and word[0][0].isupper() and word[0] not in NOT_NAMES:
                held = (held[0], end)
                continue
        if held:
            yield held
        held = (start, end)
    if held:
        yield held


def _time_of(told: Told, times: list[TimeMention], sentence: str) -> TimeMention | None:
    """The time that belongs to a statement: the first behind its words, within reach, else the one just before them."""
    if told.attribute in ("birthday", "birth_year", "age") or (told.fact_type == "relationship" and not told.changed):
        return None
    inside = [
        one for one in times if told.start <= one.start <= told.end + 24 and not _APART.search(sentence[told.end : one.start])
    ]
    if inside:
        return inside[0]
    ahead = [one for one in times if one.end <= told.start and told.start - one.end <= 3]
    return ahead[-1] if ahead else None


def _evidence(message: Message, offset: int, start: int, end: int) -> Evidence:
    return Evidence(message.id, offset + start, offset + end, message.at)
