"""What the user intends, promises, repeats, struggles with, and says to have done.

A firm word makes a commitment, a hedged one a thread unless it names a time, and what recurs is a habit. What is said to
the assistant about the talk itself (`I'll try that`) is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from perdure.domain.knowledge import TodoKind
from perdure.engine.ownwords import told_by_others
from perdure.engine.timetables import word_set
from perdure.engine.timewords import TimeMention


@dataclass(frozen=True, slots=True)
class Intent:
    """One thing to do, or done, before it has evidence."""

    kind: TodoKind
    content: str
    start: int
    end: int
    due_at: datetime | None = None
    time_words: str | None = None
    recurrence: str | None = None
    done: bool = False
    confidence: float = 0.8


@dataclass(frozen=True, slots=True)
class Completion:
    """Something a sentence says is done. `bare`: as a report of its own, `Sent the slides`."""

    verb: str
    thing: str
    start: int
    end: int
    bare: bool


CONTENT_CHARS_MAX = 160
TASK_WORDS_MAX = 16
"""What takes more words than this to say is not one thing to do."""
# What is due on a day is due before the day is over; the end of a half-open range is already the next one.
_LAST_MOMENT = timedelta(seconds=1)

_LEAD = r"(?:^|(?<=[\s,;:(—–]))"
_ADVERB = r"(?: (?:also|still|really|definitely|just|now|then|finally|urgently|absolutely|certainly|actually|seriously))*"
_TEXT = r"(?:[^.;!?\n■]|(?<=\bDr)\.|(?<=\bMr)\.|(?<=\bMs)\.|(?<=\bMrs)\.|(?<=\d)\.(?=\d)|(?<=[ap])\.m\.?)"
_WHAT = rf"(?P<what>(?!not\b|never\b|a\b|an\b|the\b|my\b|our\b|some\b)[a-z]{_TEXT}{{2,200}})"
_WILL = re.compile(
    rf"{_LEAD}(?i:(?P<soft>i think |i guess |i suppose )?i(?:['’]ll| will|['’]m going to| am going to|"
    rf"['’]m gonna)){_ADVERB} {_WHAT}"
)
_MUST = re.compile(
    rf"{_LEAD}(?i:i(?:['’]?ve got to|['’]?ve gotta| gotta| need to| have to| must| promise to|['’]?m "
    rf"supposed to)|i(?:['’]ll| will) (?:need|have) to){_ADVERB} {_WHAT}"
)
_PROMISED = re.compile(
    rf"{_LEAD}(?i:i(?:['’]ve| have)?(?: already| just)? promised(?: [\w’' ]{{2,30}}?)?(?: that)? (?:to|"
    rf"i(?:['’]d| would|['’]ll)|we(?:['’]d|['’]ll))) {_WHAT}"
)
_REMIND = re.compile(
    r"(?:^\W*|[.,;:!] |(?i:\b(?:please|pls|can you|could you|will you|would you|can you please|could you please|and|also|so) ))"
    r"(?i:remind me(?: again)?|don['’]t let me forget|make sure (?:that )?i don['’]t forget|set (?:up "
    r")?a reminder(?: for me)?|add (?:a )?(?:todo|to-do|task|reminder))"
    rf"(?P<gap>[^.;!?\n■]{{0,48}}?)(?i: to | about | that i (?:need|have) to )(?P<what>{_TEXT}{{3,200}})"
)
_NOTED = re.compile(
    rf"^\W*(?i:note to self|(?:add (?:a )?)?(?:todo|to-do|task|reminder))(?P<gap>): ?(?P<what>{_TEXT}{{3,200}})"
)
_SHOULD = re.compile(
    rf"{_LEAD}(?i:(?:maybe )?i (?:(?:really |probably )?should(?: probably| really)?|ought to)|"
    r"i(?:['’]ve| have) been meaning to|i(?:['’]m| am) meaning to|at some point i (?:need|want|have) "
    rf"to){_ADVERB} {_WHAT}"
)
_HEDGED = re.compile(
    rf"{_LEAD}(?i:i (?:might|(?:really |also )?want to|hope to|plan to|plan on|intend to|would like to|"
    r"would love to)|i['’]d (?:like|love) to|"
    r"i(?:['’]m| am) (?:also )?(?:planning to|planning on|hoping to|thinking of|thinking about|"
    r"considering)|maybe i(?:['’]ll| will)|"
    rf"i(?:['’]ll| will) (?:try to|probably|maybe)){_ADVERB} {_WHAT}"
)
_GOING = re.compile(
    rf"{_LEAD}(?i:i(?:['’]m| am)|we(?:['’]re| are))(?: also| finally)? (?P<verb>moving|flying|"
    r"travell?ing|visiting|going|heading|starting|launching|getting married|meeting|presenting|"
    r"submitting|relocating|interviewing)"
    rf"(?P<what>(?:\s{_TEXT}{{0,120}})?)(?=\s*(?:[.;!?\n■]|$))"
)
_DATES = re.compile(
    rf"{_LEAD}(?i:i(?:['’]ve got| have| got)) (?:a |an |my |another )(?P<what>(?:[\w’'-]+ "
    rf"){{0,3}}?(?:appointment|meeting|interview|exam|flight|presentation|check-?up|reservation|"
    rf"rehearsal|hearing|surgery|audition|recital){_TEXT}{{0,120}})"
)
_FRICTION = re.compile(
    rf"{_LEAD}(?i:i (?:always|keep|constantly)|i(?:['’]m| am)(?: really| always| constantly| still)? "
    r"(?:struggling|having trouble|having a hard time)|i(?:['’]ve| have) (?:really )?(?:been "
    r"struggling|trouble|had trouble|been having trouble|been having a hard time)|"
    rf"i (?:really )?struggle|i have (?:a hard time|trouble)|i find it (?:really )?(?:hard|difficult)|i can['’]t seem)"
    r" (?P<what>(?:forget\w*|missing|losing|procrastinating|putting off|running late|oversleeping|"
    r"falling asleep|getting distracted|mixing up|with|to|staying|getting|keeping|focusing|"
    rf"concentrating|sleeping|finding|being late){_TEXT}{{0,160}})"
)
_PAST = {
    "sent": "send",
    "submitted": "submit",
    "paid": "pay",
    "finished": "finish",
    "booked": "book",
    "called": "call",
    "emailed": "email",
    "mailed": "mail",
    "bought": "buy",
    "fixed": "fix",
    "renewed": "renew",
    "cancelled": "cancel",
    "canceled": "cancel",
    "returned": "return",
    "picked": "pick",
    "dropped": "drop",
    "signed": "sign",
    "registered": "register",
    "scheduled": "schedule",
    "completed": "complete",
    "delivered": "deliver",
    "shipped": "ship",
    "deployed": "deploy",
    "published": "publish",
    "uploaded": "upload",
    "ordered": "order",
    "filed": "file",
    "cleaned": "clean",
    "wrote": "write",
    "written": "write",
    "posted": "post",
    "reviewed": "review",
    "updated": "update",
    "texted": "text",
    "shared": "share",
    "watered": "water",
    "did": "do",
    "done": "do",
    "applied": "apply",
    "prepared": "prepare",
    "packed": "pack",
    "printed": "print",
    "visited": "visit",
    "met": "meet",
    "handed": "hand",
    "turned": "turn",
    "replied": "reply",
    "bought the": "buy",
    "refilled": "refill",
    "washed": "wash",
    "confirmed": "confirm",
    "arranged": "arrange",
    "invited": "invite",
}
_REPORTED = frozenset(
    (
        "send",
        "submit",
        "pay",
        "finish",
        "complete",
        "do",
        "renew",
        "file",
        "cancel",
        "return",
        "sign",
        "book",
        "call",
        "email",
        "order",
    )
)
_ANY_DONE = frozenset(("finish", "complete", "do", "hand", "turn"))
_DONE = re.compile(
    r"(?:^\W*|(?<=[,;:(—–] )|(?<=[.!] )|(?<= and )|(?<= but ))(?i:(?:update|done|good news|yay|ok|"
    r"okay|yes|yep|hey|fyi|oh|and|so|btw|finally|just|already)[,:!.]? )*"
    r"(?P<lead>(?i:i(?:['’]ve| have)?(?: just| already| finally| also)*|we(?:['’]ve| have)?(?: just| "
    rf"already| finally)*) )?(?P<verb>(?i:{'|'.join(sorted(_PAST, key=len, reverse=True))}))(?: (?:up|"
    r"off|out|in|reviewing|writing|reading|paying|packing|cleaning|preparing))?"
    r"(?P<what> (?:(?:the|my|our|that|those|his|her|for|to|with)\b|[A-Z])[^.;!?,\n■]{0,100})"
)
_IS_DONE = re.compile(
    r"(?i:\b(?:i(?:['’]m| am)|we(?:['’]re| are)) (?:finally )?(?:done|finished|through) with |"
    r"^\W*(?:finally )?(?:done|finished) with )(?P<what>(?!it\b|this\b|that\b|you\b|him\b|her\b|"
    r"them\b|work\b|school\b)[^.;!?\n■,]{3,80})"
    r"|(?i:\bthe |\bmy )(?P<thing>[\w-]+(?: [\w-]+){0,3}?) (?i:is|are)(?: now| finally| all)? (?:done|"
    r"finished|sorted|paid|sent|submitted|booked|taken care of)(?=\s*(?:[.,;!)]|$))"
)
# Errands: things to do in the world, worth keeping even without a time.
_ERRANDS = word_set(
    "send call email mail submit pay book buy schedule renew sign register cancel return pick drop "
    "file contact text rsvp refill reschedule transfer deposit mow"
)
_DUTIES = _ERRANDS | word_set(
    "finish apply order follow reply deliver invite visit confirm arrange prepare review repair wash "
    "water walk feed pack print publish complete organise organize clean hand withdraw ship"
)
_PURSUITS = word_set(
    "learn start build run switch apply move quit visit travel exercise meditate join renovate adopt "
    "study practise practice train save sell teach launch "
    "redecorate declutter volunteer retire learning starting building moving quitting visiting "
    "travelling traveling joining adopting selling switching applying renovating retiring "
    "volunteering"
)
_NO_TASKS = word_set(
    "be have know see think need want say admit miss like love feel guess assume stick try focus let "
    "keep clarify mention add explain hear understand wait get take use plan "
    "consider look share ask tell discuss describe create generate analyze incorporate make use "
    "provide respond rephrase continue give show"
)
_VAGUE = re.compile(r"\b(?:it|them|this|that|these|those)$", re.IGNORECASE)
_NO_TASK = re.compile(
    r"(?:start(?:ing)? (?:with|by|doing|working on)|learn(?:ing)? (?:more|about|from|how)|move on|"
    r"switch between|how|what|who|where|why|whether|that|if|which|it|to)\b",
    re.IGNORECASE,
)
_WONDERED = re.compile(
    r"\b(?:if|whether|wonder\w*|how|when|why|what|where|which|who|until|unless|before|after|so that|sure|mean)\s*$",
    re.IGNORECASE,
)
_DANGLING = re.compile(r"\b(?:to|of|for|with|a|an|the|my|and|or|than|as|into|such|like)$", re.IGNORECASE)
_CHAT = re.compile(
    r"\b(?:you|your|chatgpt|this (?:code|function|error|problem|question|conversation|chat|text|"
    r"sentence|answer)|the answer|as the user|those (?:tips|suggestions)|these (?:tips|suggestions))\b",
    re.IGNORECASE,
)
_TROUBLESHOOTING = re.compile(
    r"\b(?:errors?|exceptions?|bugs?|code|function|log(?:ging)? ?in|install\w*|compil\w+|output|api|"
    r"query|import|script|regex|timeouts?|css|html|form|modal|layout|deploy\w*|test(?:s|ing)?|app|"
    r"server|docker|database|sql|json|render\w*|plugin|browser|wifi|printer|datasets?)\b",
    re.IGNORECASE,
)
_LIFE = re.compile(
    r"\b(?:sleep\w*|asleep|focus\w*|concentrat\w*|motivat\w*|stress|time|anxi\w+|weight|money|saving|"
    r"waking|procrastinat\w*|remember\w*|diet|exercis\w*|kids?|habits?|organi[sz]ed|friends?|"
    r"relationship|breathing|walking|reading|school|boss|back|knee|deadlines?)\b",
    re.IGNORECASE,
)
_WEATHER = re.compile(
    r"\b(?:rain\w*|snow\w*|sunny|weather|forecast|storm\w*|degrees|humid|windy|cloudy|umbrella)\b", re.IGNORECASE
)
_TRAIL = re.compile(
    r"(?:\s*(?:,|\b(?:on|by|at|in|before|until|and|but|so|because|since|if|when|which|then|the|for|"
    r"around|from|this|starting|due|too|also|again|please|though|"
    r"as well|i think|or so|sometime|later)\b))+\s*$",
    re.IGNORECASE,
)
_CUT = re.compile(
    r"(?:,| -| –| —|:)?\s(?:because|but|so (?:that|i|we|please|it)|since (?:i|we|it|he|she)|if|when "
    r"(?:i|we|it|he|she|everything)|which|while|otherwise|or else|and (?:i|then|we|my|he|she|it|see|"
    r"perform)|"
    r"i (?:think|guess|promise|hope)|then i|as (?:i|soon|well|it)|though|although|unless|where|"
    r"considering|just in case|including|such as|especially|specifically)\b",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r", (?:i|we|he|she|it|but|so|and|which|please|ok|thanks|just|especially|including|right)\b|\s[(—–]", re.IGNORECASE
)


def find_intents(sentence: str, times: list[TimeMention], now: datetime, *, asks: bool) -> Iterator[Intent]:
    """Things to do in one sentence, whose `times` have their places in it. Of a question, only requests to remind."""
    if _WEATHER.search(sentence):
        return
    ahead = [one for one in times if one.last > now and one.kind != "since"]
    taken: list[tuple[int, int]] = []
    for intent in _candidates(sentence, ahead, asks=asks):
        if not any(start < intent.end and intent.start < end for start, end in taken):
            taken.append((intent.start, intent.end))
            yield intent


def _candidates(sentence: str, times: list[TimeMention], *, asks: bool) -> Iterator[Intent]:
    for pattern in (_REMIND, _NOTED):
        for match in pattern.finditer(sentence):
            yield from _intent(match, times, "commitment", 0.95)
    if asks:
        return
    for match in _FRICTION.finditer(sentence):
        yield from _friction(match)
    for match in _PROMISED.finditer(sentence):
        yield from _intent(match, times, "commitment", 0.9)
    for match in _SHOULD.finditer(sentence):
        yield from _intent(match, times, "thread", 0.7, _PURSUITS | _DUTIES)
    for match in _HEDGED.finditer(sentence):
        yield from _intent(match, times, "thread", 0.7, _PURSUITS)
    for match in _MUST.finditer(sentence):
        yield from _intent(match, times, "commitment", 0.85, _DUTIES)
    for match in _WILL.finditer(sentence):
        yield from _intent(match, times, "thread" if match["soft"] else "commitment", 0.8, _ERRANDS)
    for match in _GOING.finditer(sentence):
        yield from _going(match, times)
    for match in _DATES.finditer(sentence):
        if times:
            yield from _intent(match, times, "commitment", 0.8, frozenset())


def _intent(
    match: re.Match[str], times: list[TimeMention], kind: TodoKind, confidence: float, timeless: frozenset[str] | None = None
) -> Iterator[Intent]:
    """The task of a match. Without a time only the `timeless` verbs make one; None allows all."""
    content, start, end, when = _task(match, times)
    verb = content.split()[0].lower() if content else ""
    if not verb or _CHAT.search(content) or _DANGLING.search(content):
        return
    if timeless is not None:
        if (
            _NO_TASK.match(content)
            or _WONDERED.search(match.string[: match.start()])
            or told_by_others(match.string[: match.start()])
            or len(content.split()) > TASK_WORDS_MAX
        ):
            return
        if when is None and len(content.split()) < 2:
            return
        if when is None and (verb not in timeless or _VAGUE.search(content)):
            return
        if when is not None and (verb in _NO_TASKS or (when.kind == "span" and verb in ("plan", "start"))):
            return
    if when is not None and when.kind == "recurring":
        yield Intent("habit", content, start, max(end, when.end), None, when.words, when.cron, confidence=confidence)
    elif when is not None:
        yield Intent("commitment", content, start, max(end, when.end), _due(when), when.words, confidence=confidence)
    else:
        yield Intent(kind, content, start, end, confidence=confidence)


def _task(match: re.Match[str], times: list[TimeMention]) -> tuple[str, int, int, TimeMention | None]:
    """The task in its own words without the time, its place, and the time that belongs to it."""
    sentence, (start, end) = match.string, match.span("what")
    for pattern in (_CUT, _BREAK):
        cut = pattern.search(sentence, start, end)
        end = cut.start() if cut else end
    inside = [one for one in times if match.start() <= one.start < end]
    when = next((one for one in inside if one.kind == "recurring"), inside[0] if inside else None)
    behind = when is not None and when.start > start
    text = sentence[start : when.start] if when is not None and behind else sentence[start:end]
    if when is not None and when.start <= start < when.end:
        text = re.sub(r"^(?:to |that |i )", "", sentence[when.end : end].strip(" ,"))
    text = _base_form(_TRAIL.sub("", text).strip(" ,:-'\"")[:CONTENT_CHARS_MAX])
    place = match.start() + len(match[0]) - len(match[0].lstrip(" .,;:!"))
    return text[:1].upper() + text[1:], place, start + len(text), when


_DROPS_E = word_set(
    "tak mak mov bak writ rid driv us giv com hik bik sav chang shar organiz organis renovat tak "
    "danc retir hir mov danc prepar schedul continu practis practic"
)


def _base_form(text: str) -> str:
    """`visiting Rome` as a thing to do: `visit Rome`."""
    verb, space, rest = text.partition(" ")
    if not verb.endswith("ing") or len(verb) < 6:
        return text
    stem = verb[:-3]
    if stem in _DROPS_E:
        stem += "e"
    elif len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "ls":
        stem = stem[:-1]
    return f"{stem}{space}{rest}"


def _due(when: TimeMention) -> datetime | None:
    if when.exact:
        return when.first if when.kind != "until" else when.last - timedelta(minutes=1)
    return when.last - _LAST_MOMENT


def _friction(match: re.Match[str]) -> Iterator[Intent]:
    cut = _CUT.search(match.string, match.start("what"), match.end())
    end = cut.start() if cut else match.end()
    text = re.sub(r"(?i)^i(?:['’]m| am|['’]ve| have)?\s+(?:been )?", "", match.string[match.start() : end]).strip(" ,")
    if (
        not _CHAT.search(text)
        and not _TROUBLESHOOTING.search(text)
        and not _DANGLING.search(text)
        and ("trouble" not in text or _LIFE.search(text))
    ):
        yield Intent("friction", text[:1].upper() + text[1:], match.start(), end, confidence=0.85)


_BASE = {
    "moving": "Move",
    "flying": "Fly",
    "traveling": "Travel",
    "travelling": "Travel",
    "visiting": "Visit",
    "going": "Go",
    "heading": "Head",
    "starting": "Start",
    "launching": "Launch",
    "getting married": "Get married",
    "meeting": "Meet",
    "presenting": "Present",
    "submitting": "Submit",
    "relocating": "Relocate",
    "interviewing": "Interview",
}
_NO_TRIP = re.compile(
    r"\s(?:to (?!the\b|my\b|a\b|an\b|[A-Z])|through|on\b|crazy|mad|insane|forward|away from|well|"
    r"there|back and forth|over\b|in circles)"
)


def _going(match: re.Match[str], times: list[TimeMention]) -> Iterator[Intent]:
    """`I'm flying to Oslo on Monday`: with a time it is settled, and so is moving house or marrying without one."""
    verb = match["verb"].lower()
    content, start, end, when = _task(match, times) if match["what"].strip() else ("", match.start(), match.end(), None)
    if _NO_TRIP.match(match["what"]) or (when is not None and when.kind == "recurring"):
        return
    if when is None and verb not in ("moving", "relocating", "getting married"):
        return
    rest = content if match["what"].lstrip()[:1].isupper() else content[:1].lower() + content[1:]
    words = f"{_BASE[verb]} {rest}".strip()
    if when is None:
        yield Intent("thread", words, start, end)
    else:
        yield Intent("commitment", words, start, max(end, when.end), _due(when), when.words)


def find_completions(sentence: str) -> Iterator[Completion]:
    """What the sentence says is done."""
    for match in _IS_DONE.finditer(sentence):
        thing = match["what"] or match["thing"]
        yield Completion("finish", _TRAIL.sub("", thing).strip(), match.start(), match.end(), bare=match["what"] is not None)
    for match in _DONE.finditer(sentence):
        cut = _CUT.search(match.string, match.start("what"), match.end())
        text = re.split(r" and | - ", match.string[match.start("what") : cut.start() if cut else match.end()])[0]
        thing = _TRAIL.sub("", text).strip(" ,")
        yield Completion(
            _PAST[match["verb"].lower()],
            thing,
            match.start("verb"),
            match.start("what") + len(text),
            bare=not match["lead"] and not sentence[: match.start("verb")].strip(" -*•"),
        )


def completes(done: Completion, held: Intent) -> bool:
    """Whether the one says that the other is done: the same verb, or one that fits all, and a thing in common."""
    verb, *_ = held.content.lower().split()
    common = _things(done.thing) & _things(held.content)
    return bool(common) and (done.verb in _ANY_DONE or verb in (done.verb, "finish", "complete", "get", "do"))


def as_completion(done: Completion) -> Intent | None:
    """What is reported as done though nothing here says it was open: it may have been said long before."""
    if not done.bare or not _things(done.thing) or done.verb not in _REPORTED:
        return None
    verb = "finish" if done.verb == "do" else done.verb
    return Intent("commitment", f"{verb.capitalize()} {done.thing}", done.start, done.end, done=True, confidence=0.6)


_SMALL = word_set("the a an my our to of for with and by on in at it his her their this that up off out new morning today")


def _things(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[\w-]+", text.lower()) if word not in _SMALL and len(word) > 2}
