"""Statements that begin with what the user has: a name, a birthday, an address to write to, a favourite, a project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perdure.domain.knowledge import EntityName, FactType, MemoryType
from perdure.engine.factwords import CAPITALS, JOB, LANGUAGE, NAME, NOT_NAMES, ORG, PLACE, person_name, proper
from perdure.engine.timetables import word_set


@dataclass(frozen=True, slots=True)
class Told:
    """One statement, before it has a time and evidence."""

    attribute: str | None
    value: str
    content: str
    start: int
    end: int
    type: MemoryType = "PROFILE"
    fact_type: FactType = "fact"
    entities: tuple[EntityName, ...] = ()
    subject: EntityName | None = None
    confidence: float = 0.9
    importance: int = 1
    ended: bool = False
    corrects: bool = False
    changed: bool = False
    """A time beside it is when that began, or ended."""


_I = r"(?:^|(?<=[\s,;:(—–]))"
_STOP = r"(?=\s*(?:[.,;:!)—–\n]|$)|\s(?:and|but|because|so|since|though|now|with)\b)"
_EMAIL = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{2,24}){1,3}"
_PHONE = r"\+?\d(?:[ ().-]{0,2}\d){6,14}"
_LOWER_NAME = r"[a-zà-ÿ]{2,20}(?=\s*(?:[.,;!]|$)| (?:and|but|btw)\b)"

_NAME_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_I}(?i:my (?:first |full |real |actual )?name(?: is|['’]s)(?: actually| now)?) (?P<name>{NAME}|{_LOWER_NAME})",
        (
            rf"{_I}(?i:(?:you can |please |just |everyone |everybody |friends |people )*(?:calls? me)) "
            rf"(?P<name>{NAME})(?! (?:at|on|back|when|if|tomorrow|later)\b)"
        ),
        rf"{_I}(?i:i go by|i['’]?m called|i am called|i['’]?m named|my friends call me) (?P<name>{NAME})",
        rf"^\W*(?i:(?:hi|hello|hey)[,!.]? )?(?P<name>{NAME}) here(?=\s*(?:[.!,]|$))",
        (
            r"^\W*(?i:(?:hi|hello|hey|hiya|good (?:morning|evening|afternoon)|greetings)[,!.]? (?:there|all|"
            rf"everyone|team)?[,!.]?\s*)?(?i:i['’]m|i am|this is|im|it['’]s) (?P<name>{NAME})(?=\s*(?:[.!,]|$)|"
            r" (?:and|from|here|by the way|btw)\b)"
        ),
    )
)
_NOT_ME = re.compile(r"^(?:It['’]s|This is|it['’]s|this is)")
_SIMPLE: tuple[tuple[str, str, re.Pattern[str], int], ...] = tuple(
    (attribute, content, re.compile(pattern), importance)
    for attribute, content, pattern, importance in (
        (
            "birthday",
            "Birthday is {}",
            (
                rf"{_I}(?i:my (?:birthday|bday|date of birth)(?: is|['’]s)(?: on)?) (?:the "
                rf")?(?P<v>[^.;!?\n]{{3,24}}?)(?=\s*(?:[.;!\n]|,(?! ?\d)|$)| (?:and|so|but)\b)"
            ),
            2,
        ),
        (
            "email",
            "Email is {}",
            (
                r"(?i:\bmy (?:new |work |personal |private )?e-?mail(?: address)?(?: is|['’]s|:)(?: now)?|\byou "
                rf"can (?:reach|e-?mail|contact) me at|\b(?:e-?mail|reach|write) me at) (?P<v>{_EMAIL})"
            ),
            2,
        ),
        (
            "phone",
            "Phone number is {}",
            (
                r"(?i:\bmy (?:new |work |cell |mobile )*(?:phone|cell|mobile|number|telephone)(?: number)?(?: is|"
                rf"['’]s|:)(?: now)?|\b(?:call|text|reach) me (?:at|on)) (?P<v>{_PHONE})"
            ),
            2,
        ),
        (
            "timezone",
            "Time zone is {}",
            (
                r"(?i:\bmy time ?zone(?: is|['’]s)|\bi(?:['’]m| am) (?:in|on) (?:the )?)\s?(?P<v>(?:[A-Z][\w/+-]+ "
                r"?){1,3}(?= ?(?:time ?zone|[Tt]ime))|[A-Z]{2,4}T\b|UTC[+-]?\d{0,2}|GMT[+-]?\d{0,2}|"
                r"[A-Z][a-z]+/[A-Z][\w]+)"
            ),
            1,
        ),
        (
            "works_at",
            "Works at {}",
            (
                rf"{_I}(?i:my (?:new |current )?(?:employer|company|workplace)(?: is|['’]s)(?: called)?) "
                rf"(?P<v>{ORG})"
            ),
            2,
        ),
        (
            "job_title",
            "Works as {}",
            (
                rf"{_I}(?i:my (?:new |current |official )?(?:job title|title|role|position|job|occupation|"
                rf"profession)(?: is|['’]s)(?: now)?(?: that of)?) (?:a |an |the )?(?P<v>{JOB})"
            ),
            3,
        ),
        (
            "lives_in",
            "Lives in {}",
            (
                rf"{_I}(?i:my (?:home ?|new home |home city|current city|city|new city|home base)(?: is|['’]s)(?: "
                rf"now)?(?: in)?) (?P<v>{PLACE})"
            ),
            2,
        ),
        ("lives_in", "Lives in {}", rf"^\W*(?:Home is|home is) (?:now )?(?P<v>{PLACE}){_STOP}", 2),
        ("from", "Is from {}", rf"{_I}(?i:my (?:home ?town|birthplace)(?: is|['’]s)) (?P<v>{PLACE})", 1),
        ("speaks", "Speaks {}", rf"{_I}(?i:my (?:native|first|mother) (?:language|tongue)(?: is|['’]s)) (?P<v>{LANGUAGE})", 1),
        (
            "pronouns",
            "Pronouns are {}",
            (
                r"(?i:\bmy pronouns are|\bi use) (?P<v>(?:he/him|she/her|they/them|he/they|she/they)(?: "
                r"pronouns)?)"
            ),
            2,
        ),
        (
            "drives",
            "Drives {}",
            (
                rf"{_I}(?i:i drive) (?P<v>(?:a|an) (?:[\w-]+ ){{0,2}}[{CAPITALS}][\w-]+(?: [\w-]*\d[\w-]*| "
                rf"[{CAPITALS}][\w-]+)?){_STOP}"
            ),
            1,
        ),
    )
)
_OTHERS_BIRTHDAY = re.compile(
    rf"(?P<name>{NAME})['’]s (?:birthday|bday) is (?:on )?(?:the "
    rf")?(?P<v>[^.;!?\n]{{3,24}}?)(?=\s*(?:[.;!\n]|,(?! ?\d)|$)| (?:and|so|but)\b)"
)
_FAVOURITE = re.compile(
    rf"{_I}(?<!of )(?i:my (?:all-time |absolute |new )?favou?rite) (?P<what>[a-z]+(?: [a-z]+)?)(?: is|"
    r"['’]s)(?: still| now| definitely| probably)? (?P<v>(?!what|when|that|how|"
    rf"to\b)[^.,;:!?()\n]{{2,60}}?){_STOP}"
)
_CORRECT_NAME = re.compile(rf"(?i:my name (?:isn['’]t|is not)) (?P<wrong>{NAME}),? (?:but |it(?:['’]s| is) )(?P<name>{NAME})")


def find_possessions(sentence: str) -> Iterator[Told]:
    """What a sentence says of the user, beginning with `my`, and how they are called."""
    yield from _names(sentence)
    if not re.search(r"\b(?:my|me|i|i['’]m|birthday)\b", sentence, re.IGNORECASE):
        return
    for attribute, content, pattern, importance in _SIMPLE:
        for match in pattern.finditer(sentence):
            value = match["v"].strip(" ,")
            if attribute in ("works_at", "lives_in", "from"):
                value = proper(value) or ""
            if attribute == "birthday" and not re.search(r"\d|first|second|third|th\b", value):
                continue
            if attribute == "email":
                value = value.rstrip(".")
            if value:
                kind = {"works_at": "org", "lives_in": "place", "from": "place"}.get(attribute)
                entities = (EntityName(kind, value),) if kind else ()  # type: ignore[arg-type]
                words = content.format(_article(value) if attribute == "job_title" else value)
                yield Told(
                    attribute,
                    value,
                    words,
                    match.start(),
                    match.end("v"),
                    entities=entities,
                    confidence=0.95,
                    importance=importance,
                )
    for match in _FAVOURITE.finditer(sentence):
        what = match["what"].lower().replace("colour", "color")
        value = match["v"].strip()
        yield Told(
            f"favorite_{what.replace(' ', '_')}",
            value,
            f"Favorite {what} is {value}",
            match.start(),
            match.end("v"),
            fact_type="preference",
        )
    for match in _OTHERS_BIRTHDAY.finditer(sentence):
        name = person_name(match["name"])
        if name and re.search(r"\d", match["v"]):
            who = EntityName("person", name)
            yield Told(
                "birthday",
                match["v"],
                f"{name}'s birthday is {match['v']}",
                match.start(),
                match.end("v"),
                "PEOPLE",
                entities=(who,),
                subject=who,
            )


def _article(job: str) -> str:
    if re.match(r"(?:ceo|cto|coo|cfo|cmo|vp|head|chief|director|president|dean|chair|lead)\b", job, re.IGNORECASE):
        return job
    return f"{'an' if job[0].lower() in 'aeiou' else 'a'} {job}"


def _names(sentence: str) -> Iterator[Told]:
    wrong = _CORRECT_NAME.search(sentence)
    if wrong and person_name(wrong["name"]):
        name = person_name(wrong["name"]) or ""
        yield Told("name", name, f"Name is {name}", wrong.start(), wrong.end(), importance=3, confidence=0.95, corrects=True)
        return
    for index, pattern in enumerate(_NAME_PATTERNS):
        match = pattern.search(sentence)
        if match is None:
            continue
        said = match["name"]
        found = _lower_name(said, sentence) if said[0].islower() else person_name(said)
        if found is None or (index == len(_NAME_PATTERNS) - 1 and _NOT_ME.search(match[0].strip())):
            continue
        yield Told(
            "name",
            found,
            f"Name is {found}",
            match.start(),
            match.start("name") + len(said),
            importance=3,
            confidence=0.95 if index == 0 else 0.85,
        )
        return


def _lower_name(word: str, sentence: str) -> str | None:
    """A name without a capital: only of those who write none at all."""
    return word if sentence == sentence.lower() and word not in _LOWER_NOT else None


_LOWER_NOT = word_set(
    "not on in the a an too so very really what hard spelled pronounced long short common mud irrelevant important"
)

# Projects.

_KINDS = (
    r"(?:app|application|dashboard|redesign|website|web site|site|book|novel|thesis|dissertation|game|"
    r"startup|podcast|album|paper|film|documentary|prototype|platform|"
    r"migration|rewrite|refactor|launch|campaign|report|proposal|library|tool|plugin|extension|bot|"
    r"chatbot|api|portfolio|newsletter|blog|course|curriculum|"
    r"compiler|engine|renovation|project|extension|pipeline|system|service|integration|onboarding "
    r"flow|product|feature|release|exhibition|screenplay|memoir|grant application|cookbook|store)"
)
_PHRASE = (
    rf"(?P<v>(?:[{CAPITALS}][\w&+-]*(?: [{CAPITALS}0-9][\w&+-]*){{0,3}}(?: (?i:{_KINDS}))?|(?:[\w’'-]+ "
    rf"){{0,4}}?(?i:{_KINDS})(?:(?: for (?:[a-z-]+ ){{0,3}}[a-z-]+)?,? (?:called|named) "
    rf"(?P<called>[{CAPITALS}][\w&+-]*(?: [{CAPITALS}][\w&+-]*)?))?))"
)
_WORKING = re.compile(
    r"\b(?:I|i|we|We)(?:['’]?m|['’]re| am| are)(?: currently| now| also| still| mostly| busy)* "
    r"(?:working on|building|developing|designing|writing|creating|leading|running|managing)(?: a| an|"
    rf" the| my| our| some)?(?: new| big| small| side| personal)* {_PHRASE}(?={_STOP[3:-1]}|\s(?:in|on|"
    r"about|for|at|that|which|to|right|called|these|this|every|where)\b)"
)
_CALLED = re.compile(
    r"\b(?i:my|our|the) (?:new |current |main |side |big |latest )*(?:project|app|startup|side "
    r"project|product|game|book|novel|podcast)(?: is called|['’]s called| is named|, called|'s name "
    rf"is| name is) (?P<v>[{CAPITALS}][\w&+-]*(?: [{CAPITALS}0-9][\w&+-]*){{0,3}})"
)
_STATUS = re.compile(
    rf"\b(?:(?i:the|our|my) )?(?i:project )?(?P<v>[{CAPITALS}][\w&+-]*(?: "
    rf"[{CAPITALS}0-9][\w&+-]*){{0,2}}(?: (?i:{_KINDS}))?|(?<=[Tt]he )(?:[a-z-]+ ){{1,2}}?(?:{_KINDS})|"
    rf"(?<=[Oo]ur )(?:[a-z-]+ ){{0,2}}(?:{_KINDS})|(?<=[Mm]y )(?:[a-z-]+ ){{0,2}}?(?:{_KINDS})) (?:is|"
    r"['’]s|has been|was|got) (?:now |finally |officially |currently |just |been )*"
    r"(?P<s>on hold|paused|cancell?ed|delayed|finished|done|complete|completed|shipped|live|launched|"
    r"in beta|in review|in progress|postponed|approved|rejected|blocked|on track|behind schedule|"
    r"almost done|published|released|archived|shelved|put on hold)(?=\s*(?:[.,;!)]|$)|\s(?:and|but|"
    r"since|because|until|now|for|by)\b)"
)
_USES = re.compile(
    rf"(?:\b(?:(?i:the|our|my) )?(?i:project )?(?P<p>[{CAPITALS}][\w&+-]*(?: "
    rf"[{CAPITALS}0-9][\w&+-]*){{0,2}}(?: (?i:{_KINDS}))?|(?<=[Tt]he )(?:[a-z-]+ ){{0,2}}(?:{_KINDS})|"
    rf"(?<=our )(?:[a-z-]+ ){{0,2}}(?:{_KINDS})|(?<=my )(?:[a-z-]+ ){{0,2}}(?:{_KINDS})) (?:uses|is "
    r"built (?:with|on|in)|is written in|runs on|is based on) |\b(?:[Ww]e|I)(?:['’]re|['’]m| are| "
    r"am)? (?:use|using|building it with|built it with|building it in|built it in|wrote it in) "
    rf")(?P<v>[{CAPITALS}][\w.+#-]*(?: [{CAPITALS}][\w.+#-]*)?(?:(?:, and |, | and "
    rf")[{CAPITALS}][\w.+#-]*)*)(?: for (?:the |our |my )?(?P<p2>(?:[\w-]+ ){{0,3}}(?:{_KINDS}|"
    rf"[{CAPITALS}][\w-]+))(?=\s*(?:[.,;!)]|$)))?"
)
_DEADLINE = re.compile(
    r"(?:\b(?i:the|my|our) (?:final |submission |hard )?(?:deadline|due date|launch date|release "
    rf"date) (?:for|of) (?:the |my |our )?(?P<a>[\w&+ -]{{2,40}}?) (?:is|['’]s|was moved to|moved to|"
    r"got moved to|has moved to|is now)(?: now)?(?: on| by)?|\b(?:(?i:the|my|our) )(?P<b>(?:[\w&+-]+ "
    rf"){{0,3}}?(?:{_KINDS}|[{CAPITALS}][\w&+-]*)) (?:is|['’]s) due(?: on| by| in)?|\b(?:(?i:we|"
    r"I))(?:['’]re|['’]m| are| am) (?:launching|releasing|shipping|publishing|submitting) (?:the |our "
    rf"|my )?(?P<c>[\w&+ -]{{2,40}}?)(?: on| in| by| at)?) (?=(?P<when>.{{3,}}))"
)
_ROLE = re.compile(
    r"\b(?:I|i)(?:['’]?m| am)?(?: currently| now)? (?P<r>lead|leading|in charge of|the (?:project |"
    r"product |tech |technical |team )?(?:lead|manager|owner) (?:for|of|on)|manage|managing|run|"
    rf"running) (?:the |our |a )?(?P<v>[\w&+ -]{{2,40}}? (?:project|redesign|migration|launch|rollout|"
    rf"campaign|initiative|team)){_STOP}"
)


def find_projects(sentence: str) -> Iterator[Told]:
    """What a sentence says of things the user works on."""
    for pattern in (_WORKING, _CALLED):
        for match in pattern.finditer(sentence):
            name = _project(match.groupdict().get("called") or match["v"])
            if name:
                project = EntityName("project", name)
                yield Told(
                    "works_on",
                    name,
                    f"Working on {name}",
                    match.start(),
                    match.end("v"),
                    "PROJECT",
                    entities=(project,),
                    importance=2,
                )
    for match in _STATUS.finditer(sentence):
        name = _project(match["v"])
        if name and match["v"].split()[0] not in NOT_NAMES and (" " in name or name[:1].isupper()):
            yield _of_project(name, "status", match["s"], f"{name} is {match['s']}", match.start("v"), match.end("s"))
    for match in _USES.finditer(sentence):
        name = _project(match["p"] or match["p2"] or "", bare=True)
        if name:
            for value in re.split(r", and |, | and ", match["v"].rstrip(".")):
                yield _of_project(name, "technology", value, f"{name} uses {value}", match.start(), match.end())
    for match in _ROLE.finditer(sentence):
        name = _project(match["v"])
        if name:
            yield _of_project(name, "role", "lead", f"Leads {name}", match.start(), match.end("v"))


def deadlines(sentence: str) -> Iterator[tuple[str, int, int]]:
    """Projects whose date a sentence tells, with the place where they stand and where the date begins."""
    for match in _DEADLINE.finditer(sentence):
        name = _project(match["a"] or match["b"] or match["c"] or "", bare=True)
        if name:
            yield name, match.start(), match.start("when")


def deadline_of(name: str, words: str, start: int, end: int) -> Told:
    return _of_project(name, "deadline", words, f"Deadline of {name} is {words}", start, end)


def _of_project(name: str, attribute: str, value: str, content: str, start: int, end: int) -> Told:
    project = EntityName("project", name)
    return Told(
        attribute,
        value,
        content,
        start,
        end,
        "PROJECT",
        entities=(project,),
        subject=project,
        importance=2 if attribute == "deadline" else 1,
    )


_TOO_BARE = word_set(
    "project report paper tool system service feature product release launch store library site app "
    "application game paper proposal platform"
)
_NO_PROJECT = re.compile(
    r"(?i)\b(?:my|our|your|his|her|their)\b|^(?:it|this|that|them|something|my|me|us|some|things?|"
    r"stuff|new|here|there|he|she|we|i|they|everything|nothing)\b"
)


def _project(words: str, *, bare: bool = False) -> str | None:
    words = re.sub(r"^(?:(?:a|an|the|my|our|new|project)\s+)+", "", words.strip(), flags=re.IGNORECASE).strip()
    words = re.sub(r"(?<=\w)\s+project$", "", words, flags=re.IGNORECASE)
    if not words or _NO_PROJECT.search(words) or words in NOT_NAMES or words.split()[0].endswith("ing"):
        return None
    return None if words.casefold() in _TOO_BARE and not bare else words
