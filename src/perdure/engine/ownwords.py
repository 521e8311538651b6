"""The writer's own statements in a message: what is quoted, pasted, code, a question or make-believe is told apart.

Works by form alone. When in doubt a stretch is not the writer's own: what is left out can be said again.
"""

from __future__ import annotations

import re
from typing import Literal

from perdure.engine.cues import is_question

OWN_CHARS_MAX = 12_000
"""A message longer than this is read up to here: longer ones are documents."""
PARAGRAPH_CHARS_MAX = 1_500
"""In a message of more than twice this, a paragraph longer than this is something pasted."""
HOLE = "■"
"""Stands for each character that is not the writer's own within a line."""

Why = Literal["question", "hypothetical", "hearsay", "fiction", "joke", "secret", "instruction", "hidden"]

_FENCED = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]{1,400}`")
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_QUOTES = re.compile(
    r"\"([^\"\n]{1,1500})\"|“([^”\n]{1,1500})”|«([^»\n]{1,1500})»|„([^“”\n]{1,1500})[“”]|(?<![\w])'([^'\n]{12,1500})'(?!\w)"
)
_QUOTED_WORDS_KEPT = 2
_HEADER = re.compile(r"^(?:From|To|Subject|Sent|Date|Cc|Bcc|Von|An|Betreff|De|Para|Asunto|Objet): .*$", re.MULTILINE)
_FORWARDED = re.compile(
    r"^.*(?:-{3,} ?Original Message|Forwarded message|Begin forwarded|^On .{4,80} wrote:$).*$", re.MULTILINE
)
_SPEAKER = re.compile(r"^(?:\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]? ?)?[A-Z][\w .'-]{0,24}(?: \(\w+\))?: \S", re.MULTILINE)
_LONG_LINE = re.compile(rf"[^\n]{{{PARAGRAPH_CHARS_MAX},}}")
_WORK_ON_TEXT = (
    r"translat\w+|proof-?read\w*|rewrit\w+|rephras\w+|paraphras\w+|summari[sz]\w+|edit|correct|fix|"
    r"review|check|improve|polish|shorten"
    r"|critique|analy[sz]e|draft\w*|write|compose|grade|reply to|respond to|answer"
)
_DOCUMENT = (
    r"draft|essay|e-?mail|letter|cv|resume|résumé|bio|text|article|story|post|paragraph|transcript|message|poem|lyrics|paper|"
    r"report|notes?|chapter|scene|dialogue|review|profile|listing|cover letter|speech|statement|log|error|prompt|excerpt|quote|"
    r"sentences?|passage|example|doc(?:ument)?|snippet|output|template|note from|e-?mail from|message from"
)
_PASTE = re.compile(
    rf"(?:\b(?:{_WORK_ON_TEXT})\b|\b(?:this|the|my|a|an|here(?:['’]s| is| are)|"
    rf"following)\b[^\n:]{{0,40}}\b(?:{_DOCUMENT})\b)[^\n:.!?]{{0,120}}:(?=\s)",
    re.IGNORECASE,
)


def own_words(text: str) -> str:
    """`text` with what is quoted, pasted or code blanked out; every character that remains keeps its place."""
    text = text[:OWN_CHARS_MAX]
    for pattern in (_FENCED, _QUOTED_LINE):
        text = pattern.sub(_blank, text)
    text = _INLINE_CODE.sub(_hole, text)
    text = _after(text, _pasted_from(text))
    text = _QUOTES.sub(_hole_if_long, text)
    if len(_SPEAKER.findall(text)) >= 2:
        text = re.sub(rf"{_SPEAKER.pattern}.*$", _blank, text, flags=re.MULTILINE)
    if len(text) > 2 * PARAGRAPH_CHARS_MAX:
        text = _LONG_LINE.sub(_blank, text)
    return text


def _pasted_from(text: str) -> int:
    """Where something begins that the writer only passes on; the end of the text if nothing does."""
    starts = [len(text)]
    headers = list(_HEADER.finditer(text))
    if len(headers) >= 2:
        starts.append(headers[0].start())
    starts.extend(match.start() for match in [_FORWARDED.search(text)] if match)
    starts.extend(match.end() for match in [_PASTE.search(text)] if match)
    return min(starts)


def _blank(match: re.Match[str]) -> str:
    return "\n" * len(match[0])


def _hole(match: re.Match[str]) -> str:
    return HOLE * len(match[0])


def _hole_if_long(match: re.Match[str]) -> str:
    inside = next(group for group in match.groups() if group is not None)
    return HOLE * len(match[0]) if len(inside.split()) > _QUOTED_WORDS_KEPT else match[0]


def _after(text: str, start: int) -> str:
    return text[:start] + "\n" * (len(text) - start)


# Sentences that state nothing.

_HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_SECRET = re.compile(
    r"\b(?:pass(?:word|code|phrase|wort)|api[ _-]?key|secret(?: key)?|access token|private key|"
    r"credentials?|pin(?: code| number)|cvv|"
    r"ssn|social security|iban|card number|credit card|one-time code|otp|2fa code|seed phrase)\b|"
    r"\b(?:sk|pk|ghp|gho|xox[bp]|AKIA|AIza|eyJ)[-_A-Za-z0-9]{12,}|-----BEGIN|\b(?:\d[ -]?){13,19}\b|\b\d{3}-\d\d-\d{4}\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"^\W*(?:(?:and|but|so|well|now|ok(?:ay)?|also|even|only|yes|no|hmm|oh),? )*(?:if|unless|"
    r"suppos(?:e|ing)|assum(?:e|ing)|imagin(?:e|ing)|"
    r"pretend|what if|had i|were i|should i|in case|provided|let['’]s (?:say|pretend|assume|imagine)|"
    r"say i|hypothetically|in theory|"
    r"in an? (?:ideal|perfect|alternate|parallel|different) (?:world|life|universe)|in (?:another|my "
    r"next) life|one day|some ?day|ideally|"
    r"hopefully|maybe|perhaps|when i grow up|when i(?:'m| am) (?:old|rich|retired|\d+)|when i retire|"
    r"as if|as though|for example|e\.g)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\b(?:i wish|if only|would(?:n['’]t)? (?:love|like|prefer|be|have|move|live|work|rather|want)|"
    r"i['’]d (?:love|like|move|live|work|be|rather|have|want)"
    r"|dream(?:ing|ed|t)? (?:of|about|that)|daydream\w*|fantasi[sz]\w+|in my dreams?|could have|might "
    r"have|would have|almost|nearly|thought i"
    r"|pretend\w*|role-?play\w*|as if i|joking|hypothetical\w*)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:i think|i guess|i believe|i suppose|i['’]m not sure|not sure|unsure|maybe|perhaps|probably|"
    r"possibly|supposedly|apparently|"
    r"allegedly|reportedly|or something|might be|may be|could be|i assume|as far as i know|afaik|if i "
    r"remember|if i recall|i forget|"
    r"don['’]t remember|can['’]t remember|hopefully|who knows|seems?|rumou?r\w*|i doubt)\b",
    re.IGNORECASE,
)
_HEARSAY = re.compile(
    r"\b(?:according to|(?:i(?:['’]ve)?|we) (?:just )?(?:heard|read|saw)|they say|people say|word is|"
    r"(?!i\b|we\b)[\w’']+ (?:just |also |once |always |keeps )?(?:said|says|say|saying|claims?|"
    r"claimed|tells?|told|thinks?|thought|believes?|"
    r"believed|reckons?|insists?|insisted|wrote|writes|posted|tweeted|mentioned|assumes?|assumed|"
    r"joked?|suggested|swears|lied))\b",
    re.IGNORECASE,
)
_FICTION_ALL = re.compile(
    r"\b(?:role-?play\w*|pretend (?:that |to be |you|i|we)|imagine (?:that |you|i|we|a )|act as|"
    r"let['’]s (?:pretend|imagine|play)|you are now|"
    r"(?:write|tell|make up|invent|create|generate|give|compose) (?:me |us )?(?:a|an|the|some) "
    r"(?:[\w-]+ ){0,3}(?:story|poem|song|scene|dialogue|"
    r"script|novel|joke|tale|limerick|haiku|character|persona|monologue|rap|lyrics|fairy ?tale|backstory|example sentences?)|"
    r"hypothetically|for the sake of argument|in this scenario|thought experiment|math problem|word "
    r"problem|riddle|here['’]s a riddle)\b",
    re.IGNORECASE,
)
_FICTION = re.compile(
    r"\b(?:in|for|from) (?:my|the|this|a|an|our|his|her) (?:[\w-]+ )?(?:novel|story|book|game|dreams?|"
    r"movie|film|screenplay|script|campaign|scenario|"
    r"fanfic\w*|fantasy|example|simulation|song|poem|show|series|sitcom|episode|play|d&d|comic|ad|advert|article|text)\b|"
    r"\b(?:the |my )(?:protagonist|main character|hero(?:ine)?|villain|narrator|character)\b|"
    r"\b(?:last night i|i (?:once )?) ?dream(?:ed|t)\b",
    re.IGNORECASE,
)
_JOKE = re.compile(
    r"\b(?:just kidding|jk|kidding|joking|(?:a|my) joke|lol|lmao|rofl|haha\w*|hehe\w*|yeah,? right|as "
    r"if|not really|totally not|/s|sarcas\w+)\b|[😂🤣😜🙃😏]|(?<=\s)/s\b",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override) (?:all |any |the |your |my )*(?:previous|prior|above|"
    r"earlier|other|system)?\s*(?:instructions?|rules?|prompts?|guidelines)\b|"
    r"\b(?:system prompt|you must (?:always|never)|from now on,? you|new instructions?|jailbreak|as an ai)\b",
    re.IGNORECASE,
)
_QUESTION_START = re.compile(
    r"^\W*(?:(?:and|but|so|ok(?:ay)?|hey|hi|well|please),? )*(?:what|where|when|who|whom|whose|why|"
    r"how|which|do|does|did|is|are|am|was|were|can|could|would|"
    r"should|will|shall|have|has|had|may|might|isn['’]t|aren['’]t|don['’]t|didn['’]t|doesn['’]t|"
    r"won['’]t|wouldn['’]t|can['’]t|couldn['’]t)(?:['’]s|['’]re)?\s+"
    r"(?:i|you|we|he|she|they|it|the|my|your|our|his|her|their|there|this|that|these|those|a|an|anyone|anybody|someone)\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|hey|hi|hello|so|and|now|also|then|please|pls|could you|can you|would you|"
    r"will you),? )*(?:translate|write|rewrite|draft|compose|say|"
    r"tell (?:him|her|them)|explain|describe|summari[sz]e|generate|create|make|convert|format|repeat|"
    r"complete|finish|continue|recite|define|find|show|"
    r"give|list|search|look up|compare|calculate|help|suggest|recommend|add|use|open|play|set|change|"
    r"update (?:the|this)|delete|remove|print)\b",
    re.IGNORECASE,
)


def states_nothing(sentence: str) -> Why | None:
    """Why a sentence is not taken as a statement of fact, going by its form; None if nothing speaks against it."""
    if _HIDDEN.search(sentence):
        return "hidden"
    if _SECRET.search(sentence):
        return "secret"
    if _INSTRUCTION.search(sentence):
        return "instruction"
    if is_question(sentence) or "?" in sentence[-4:] or _QUESTION_START.match(sentence):
        return "question"
    if _CONDITION.match(sentence) or _WISH.search(sentence):
        return "hypothetical"
    if _FICTION.search(sentence) or _FICTION_ALL.search(sentence):
        return "fiction"
    if _JOKE.search(sentence):
        return "joke"
    return "instruction" if _IMPERATIVE.match(sentence) else None


def is_unsure(sentence: str) -> bool:
    """Whether the writer marks the sentence as a guess or as told by others."""
    return bool(_UNSURE.search(sentence))


def told_by_others(before: str) -> bool:
    """Whether what stands `before` a statement, in its sentence, makes it somebody else's."""
    return bool(_HEARSAY.search(before))


def opens_fiction(sentence: str) -> bool:
    """Whether everything after this sentence, in the same message, is make-believe."""
    return bool(_FICTION_ALL.search(sentence))


def takes_back(sentence: str) -> bool:
    """Whether it says that the sentence before was not meant: `just kidding`."""
    return bool(
        re.match(
            r"\W*(?:just kidding|jk\b|kidding|only joking|just joking|not!|i['’]m kidding|i['’]m joking)",
            sentence,
            re.IGNORECASE,
        )
    )
