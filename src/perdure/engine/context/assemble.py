"""Packs what is remembered and what was said into a token budget. Never over it; says what it left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perdure.domain.context.chat import ChatLists, Talk, call_text
from perdure.domain.context.context import CUT_MARK, Block, Context
from perdure.domain.context.recall import Hit
from perdure.domain.conversation.digests import Digest, trust_of
from perdure.domain.conversation.messages import Message
from perdure.domain.text.fences import fenced
from perdure.domain.text.secrets import without_secrets
from perdure.domain.values import dataclass, replace
from perdure.engine.context.blocks import ContextList, EntityCard, FoundLines, listed_block, with_cost
from perdure.engine.conversation.turns import turn_starts, without_late_results
from perdure.engine.search.entries import digest_ref
from perdure.engine.text.sentences import cut_text

Count = Callable[[str], int]
PINNED_HEADING = "Kept word for word:"
MESSAGE_OVERHEAD_TOKENS = 4
"""What the frame of a chat message costs besides its text."""
BLOCK_SHARE = 0.5
"""Blocks may take so much of the budget; the conversation itself has the rest."""
SOUGHT_BLOCK_SHARE = 0.3
"""The same when there is a goal: what is found for it needs the room."""
RECENT_SHARE = 0.2
"""With a goal, the newest turns have at least so much."""
BLOCK_ORDER = (
    "foundation",
    "instructions",
    "spine",
    "lessons",
    "session_digest",
    "previous_tail",
    "left_off",
    "summary",
    "rolling_digest",
    "memories",
    "todos",
    "series",
)
EXCERPT_SHARE = 0.25
"""One message may take so much of what the conversation has."""
EXCERPT_CHARS_MIN = 200
ADDED_TRIES_MAX = 4
"""What a list needs besides its messages depends on which there are; it seldom takes a second look."""

# When blocks do not fit, the first of these go first.
DROP_ORDER = ("rolling_digest", "left_off", "spine", "session_digest", "previous_tail", "summary")


@dataclass(frozen=True, slots=True)
class SessionLayers:
    """What the layers have to say about a session."""

    spine: Digest | None = None
    previous: Digest | None = None
    """The digest of the session before this one."""
    previous_tail: tuple[Message, ...] = ()
    """The last messages of the session before, while its digest is not written yet."""
    left_off: Digest | None = None
    """The rolling digest of the session before, until this one has its own."""
    rolling: Digest | None = None
    fold: Digest | None = None


@dataclass(frozen=True, slots=True)
class ContextKnowledge:
    """What is known apart from the layers of the conversation."""

    lists: tuple[ContextList, ...] = ()
    cards: tuple[EntityCard, ...] = ()
    hits: tuple[Hit, ...] = ()
    sought: bool = False
    """There is a goal: what was found for it comes before the rest of the conversation."""


def assemble(
    remembered: SessionLayers,
    known: ContextKnowledge,
    working: Sequence[Message],
    budget_tokens: int,
    count: Count,
    *,
    unread: int = 0,
    goal: str | None = None,
) -> Context:
    """The context for one request. `unread` messages of the working set were not even looked at."""
    said = without_late_results(working)
    made = _packed(remembered, _with_cards(known), said, budget_tokens, count, unread=unread, goal=goal)
    pinned = {source for one in known.lists if one.kind == "foundation" for line in one.lines for source in line.sources}
    if any(fact.id in pinned and fact.id not in made.sources for card in known.cards for fact in card.facts):
        # A card had no room. What always holds is not lost with it: it stands by itself.
        made = _packed(remembered, _without(known, pinned), said, budget_tokens, count, unread=unread, goal=goal)
    return made


def _packed(
    remembered: SessionLayers,
    known: ContextKnowledge,
    said: list[Message],
    budget_tokens: int,
    count: Count,
    *,
    unread: int,
    goal: str | None,
) -> Context:
    dropped: list[str] = [f"{unread} messages of this session that wait to be folded"] if unread else []
    # What is asked comes first of all: without it, the rest answers nothing.
    asked = _goal_room(goal, said, budget_tokens, count, dropped)
    budget = budget_tokens - asked.tokens
    share = SOUGHT_BLOCK_SHARE if known.sought else BLOCK_SHARE
    lists = _lists(known.lists, budget_tokens, budget, count, dropped)
    room = max(0, int(budget * share) - sum(block.tokens for block in lists if not block.volatile))
    layers = _fitting(_blocks(remembered, count), room, count, dropped)
    left = budget - sum(block.tokens for block in (*lists, *layers))
    known = _without(known, _sources_of(remembered, layers))
    talk = replace(asked, room=left)
    if known.sought:
        # First the conversation in its smallest useful form, then what was found, then more of the conversation.
        recent = _latest_turns(said, talk.within(min(left, int(budget * RECENT_SHARE))), count, [])
        room = left - _talk_cost(recent, talk, count)
        found, messages = _found_and_said(known, said, talk, room, count, dropped)
        lists += [] if found is None else [found]
    else:
        messages = _latest_turns(said, talk, count, dropped)
    blocks = _ordered((*lists, *layers))
    tokens = asked.tokens + sum(block.tokens for block in blocks) + _talk_cost(messages, talk, count)
    return Context(
        blocks=tuple(blocks),
        messages=tuple(messages),
        tokens=tokens,
        budget_tokens=budget_tokens,
        dropped=tuple(dropped),
        goal=asked.goal,
    )


def _with_cards(known: ContextKnowledge) -> ContextKnowledge:
    """What is known with a pinned fact on the card of its entity, if it has one, and not in the foundation as well."""
    carded = {fact.id for card in known.cards for fact in card.facts}
    lists = [
        replace(one, lines=tuple(line for line in one.lines if carded.isdisjoint(line.sources)))
        if one.kind == "foundation"
        else one
        for one in known.lists
    ]
    return replace(known, lists=tuple(lists))


@dataclass(frozen=True, slots=True)
class TalkRoom:
    """How much room the conversation has, and what is asked behind it."""

    goal: str | None
    """None if the conversation ends with it."""
    tokens: int
    """What asking costs."""
    room: int = 0

    def within(self, room: int) -> TalkRoom:
        """The same with other room."""
        return replace(self, room=room)


def _goal_room(goal: str | None, said: Sequence[Message], budget: int, count: Count, dropped: list[str]) -> TalkRoom:
    """The goal as it will be asked, if the log does not end with it already; cut only if it alone is over the budget."""
    if goal is None or (said and said[-1].role == "user" and _words(said[-1].content) == _words(goal)):
        return TalkRoom(None, 0)
    text = fenced(goal).strip()
    whole = count(text) + MESSAGE_OVERHEAD_TOKENS
    if whole <= budget:
        return TalkRoom(text, whole)
    chars = len(text)
    while chars and count(text) + MESSAGE_OVERHEAD_TOKENS > budget:
        chars = chars * 3 // 4
        text = cut_text(text, chars)
    dropped.append(f"the end of the goal, which has {whole} tokens")
    return TalkRoom(text or None, count(text) + MESSAGE_OVERHEAD_TOKENS)


def _words(text: str) -> str:
    """For comparing what is asked with what is logged, where no secret stands."""
    return " ".join(without_secrets(text).split())


def _without(known: ContextKnowledge, told: set[str]) -> ContextKnowledge:
    """What is known without what has its place already."""
    cards = [replace(card, facts=tuple(fact for fact in card.facts if fact.id not in told)) for card in known.cards]
    hits = tuple(hit for hit in known.hits if hit.id not in told)
    return replace(known, cards=tuple(card for card in cards if card.facts), hits=hits)


def _sources_of(remembered: SessionLayers, kept: Sequence[Block]) -> set[str]:
    """The digests that have blocks of their own among those kept, and the messages that stand whole in them."""
    layers = {
        "spine": remembered.spine,
        "session_digest": remembered.previous,
        "left_off": remembered.left_off,
        "rolling_digest": remembered.rolling,
        "summary": remembered.fold,
    }
    told = {
        digest_ref(layer.address, layer.session_number, layer.kind)
        for block in kept
        if (layer := layers.get(block.kind)) is not None
    }
    return told | {source for block in kept for source in block.sources}


def _found_and_said(
    known: ContextKnowledge, said: list[Message], talk: TalkRoom, room: int, count: Count, dropped: list[str]
) -> tuple[Block | None, list[Message]]:
    """What was found within its room, and the conversation in what that leaves. Nothing is told twice."""
    left = talk.room
    lines = FoundLines(known.cards, known.hits, room, count)
    left_out: list[str] = []
    found = lines.block(left_out)
    missing: list[str] = []
    messages = _latest_turns(said, talk.within(left - (0 if found is None else found.tokens)), count, missing)
    shown = {message.id for message in messages}
    if any(hit.id in shown for hit in known.hits):
        left_out.clear()
        found = lines.block(left_out, shown)
    if found is not None and found.tokens + _talk_cost(messages, talk, count) > left:
        missing.clear()
        messages = _latest_turns(said, talk.within(left - found.tokens), count, missing)
    dropped += left_out + missing
    return found, messages


def _lists(lists: Sequence[ContextList], budget: int, left: int, count: Count, dropped: list[str]) -> list[Block]:
    """Each list within its share of the budget, in their order, as long as there is something left."""
    blocks: list[Block] = []
    for one in lists:
        block = listed_block(one, min(int(budget * one.share), left), count, dropped) if one.lines else None
        if block is not None:
            blocks.append(block)
            left -= block.tokens
    return blocks


def _ordered(blocks: Sequence[Block]) -> list[Block]:
    """What changes most seldom first, so that a prompt keeps its beginning."""
    return sorted(blocks, key=lambda block: (block.volatile, BLOCK_ORDER.index(block.kind)))


def fold_text(fold: Digest) -> str:
    """A fold as the agent reads it: the summary, then what was kept word for word and is not in it anyway."""
    pinned = "\n".join(line for line in fold.pinned if line not in fold.text)
    return "\n\n".join(part for part in (fold.text, f"{PINNED_HEADING}\n{pinned}" if pinned else "") if part)


def _blocks(remembered: SessionLayers, count: Count) -> list[Block]:
    """In the order of how seldom they change, so that a prompt keeps its beginning."""
    found = []
    if remembered.spine is not None:
        found.append(("spine", "Story so far", remembered.spine, remembered.spine.text))
    if remembered.previous is not None:
        found.append(("session_digest", "The previous session", remembered.previous, remembered.previous.text))
    if remembered.left_off is not None:
        found.append(("left_off", "Where the previous session left off", remembered.left_off, remembered.left_off.text))
    if remembered.fold is not None:
        found.append(("summary", "Earlier in this session", remembered.fold, fold_text(remembered.fold)))
    if remembered.rolling is not None:
        found.append(("rolling_digest", "Where this session stands", remembered.rolling, remembered.rolling.text))
    blocks = [_block(kind, title, digest_label(digest), text, count) for kind, title, digest, text in found if text]
    if remembered.previous_tail:
        # Each on a line of its own: a line break in a message must not begin another one's.
        tail = "\n".join(f"{message.role}: {' '.join(message.content.split())}" for message in remembered.previous_tail)
        first, last = remembered.previous_tail[0], remembered.previous_tail[-1]
        source = f"session {first.session_number}, messages {first.seq} to {last.seq}; its digest is not written yet"
        block = _block("previous_tail", "The end of the previous session", source, tail, count)
        blocks.append(replace(block, sources=tuple(message.id for message in remembered.previous_tail)))
    return blocks


def _block(kind: str, title: str, source: str, text: str, count: Count) -> Block:
    return with_cost(Block(kind, title, source, text, 0), count)


def digest_label(digest: Digest) -> str:
    """Which digest it is, for people and for the journal."""
    spans = ", ".join(f"session {one.session_number} messages {one.first_seq} to {one.last_seq}" for one in digest.sources[:3])
    more = f" and {len(digest.sources) - 3} more" if len(digest.sources) > 3 else ""
    since = f", continuing version {digest.based_on}" if digest.based_on else ""
    return f"{digest.kind} version {digest.version} by {digest.summariser}: {spans}{more}{since}; trust: {trust_of(digest)}"


def _fitting(blocks: list[Block], budget: int, count: Count, dropped: list[str]) -> list[Block]:
    for kind in DROP_ORDER:
        over = sum(block.tokens for block in blocks) - budget
        if over <= 0:
            break
        for index, block in enumerate(blocks):
            if block.kind == kind:
                shorter = _shortened(block, block.tokens - over, count)
                dropped.append(f"{block.title}: {'cut' if shorter else 'left out'}, {block.tokens} tokens")
                blocks[index : index + 1] = [] if shorter is None else [shorter]
                break
    return blocks


def _shortened(block: Block, tokens_max: int, count: Count) -> Block | None:
    """The block cut to so many tokens; None if nothing worth reading would be left."""
    chars = len(block.text)
    shorter = block
    while shorter.tokens > tokens_max:
        chars = int(chars * min(0.9, max(tokens_max, 1) / shorter.tokens))
        if chars < EXCERPT_CHARS_MIN:
            return None
        shorter = _block(block.kind, block.title, block.source, cut_text(block.text, chars), count)
    return shorter


def _cost(message: Message, count: Count) -> int:
    calls = sum(MESSAGE_OVERHEAD_TOKENS + count(call_text(call)) for call in message.tool_calls)
    # More may have been stated than the text has, as for a picture; less does not count, nor what another counter found.
    return MESSAGE_OVERHEAD_TOKENS + max(message.tokens, count(message.content)) + calls


def _talk_cost(messages: Sequence[Message], talk: TalkRoom, count: Count) -> int:
    """What messages cost, with what a list of them needs besides."""
    return sum(_cost(message, count) for message in messages) + _added_cost(messages, talk, count)


def _added_cost(messages: Sequence[Message], talk: TalkRoom, count: Count) -> int:
    if all(message.role in ("user", "assistant") and not message.tool_calls for message in messages) and (
        not messages or messages[0].role == "user"
    ):
        return 0
    return sum(MESSAGE_OVERHEAD_TOKENS + count(text) for text in ChatLists(Talk(messages, goal=talk.goal)).added)


def _latest_turns(messages: list[Message], talk: TalkRoom, count: Count, dropped: list[str]) -> list[Message]:
    """Whole turns from the newest back, as many as fit; of the newest one, what fits."""
    if not messages:
        return []
    added, kept = 0, list[Message]()
    for _ in range(ADDED_TRIES_MAX):
        kept = _turns_within(messages, talk.room - added, count)
        if (more := _added_cost(kept, talk, count)) <= added:
            break
        added = more
    else:
        kept = []
    if len(kept) < len(messages):
        dropped.append(f"{len(messages) - len(kept)} messages of this session")
    cut = sum(message.content.endswith(CUT_MARK) for message in kept)
    if cut:
        dropped.append(f"the end of {cut} long messages")
    return kept


def _turns_within(messages: list[Message], budget: int, count: Count) -> list[Message]:
    longest = max(int(budget * EXCERPT_SHARE), 1)
    starts = [0, *turn_starts(messages)]
    kept: list[Message] = []
    left = budget
    for start, end in reversed(list(zip(starts, [*starts[1:], len(messages)], strict=True))):
        turn = [_excerpt(message, longest, count) for message in messages[start:end]]
        cost = sum(_cost(message, count) for message in turn)
        if cost > left:
            return kept or _newest_fitting(turn, left, count)
        kept = turn + kept
        left -= cost
    return kept


def _newest_fitting(turn: list[Message], budget: int, count: Count) -> list[Message]:
    """The end of a turn that is too long as a whole, beginning with what the user asked, if that fits."""
    head = turn[:1] if turn and turn[0].role == "user" and _cost(turn[0], count) <= budget else []
    left = budget - sum(_cost(message, count) for message in head)
    tail: list[Message] = []
    for message in reversed(turn[len(head) :]):
        cost = _cost(message, count)
        if cost > left:
            break
        tail.insert(0, message)
        left -= cost
    # A result without its call would be refused by the model.
    return head + without_late_results(tail)


def _excerpt(message: Message, tokens_max: int, count: Count) -> Message:
    # A count that was stated for more than the text, such as a picture, does not get less by cutting the text.
    if message.tokens <= tokens_max or count(message.content) <= tokens_max:
        return message
    chars = max(tokens_max * 3, EXCERPT_CHARS_MIN)
    text = message.content
    while True:
        note = f"\n[… {len(text) - chars} characters left out; message {message.id}{CUT_MARK}"
        short = cut_text(text, chars) + note
        tokens = count(short)
        if tokens <= tokens_max or chars <= 1:
            return replace(message, content=short, tokens=tokens)
        chars = chars * 3 // 4
