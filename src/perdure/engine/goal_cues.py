"""How a goal is worded: whether it speaks of what is the user's, or of what everybody could be asked."""

from __future__ import annotations

import re

_LANGUAGES = "french|german|spanish|italian|portuguese|latin|catalan|dutch|japanese|chinese|english|russian|arabic|greek|polish"
CUES: tuple[tuple[str, str], ...] = (
    ("mine", r"\b(?:my|mine|our|ours)\b"),
    ("i", r"\b(?:i|i['’](?:m|ve|ll|d)|we|we['’](?:re|ve|ll)|us|me)\b"),
    ("a_thing", r"\b(?:a|an)\b"),
    ("the_thing", r"\bthe\b"),
    (
        "meaning",
        (
            r"\b(?:mean(?:s|ing)?|stands? for|definition|define|plural|synonyms?|spell(?:ed|ing)?|pronounc\w*"
            r"|word for|etymology"
            r"|capital of|comes? from|history of|invent(?:ed|or)|founded|discovered|wrote|painted|translat\w*|rule of|grammar"
            rf"|in (?:{_LANGUAGES}))\b"
        ),
    ),
    (
        "explain",
        (
            r"^(?:please )?(?:explain|define|describe|translate|convert|calculate|compute|sort|rewrite|rephrase"
            r"|correct|shorten|fix"
            r"|summari[sz]e|proofread|paraphrase|simplify|count)\b|\bhow (?:do|does|did|is|are) (?:(?:an?"
            r"|the) )?\w+ (?:work|made|happen)\b"
            r"|\bwhat(?: is| are| was| were|['’]s) an?\b|\bwhy (?:is|are|do|does|did)\b"
        ),
    ),
    (
        "create",
        (
            r"^(?:please )?(?:write|compose|suggest|recommend|invent|give|tell|pick|draw|make up|imagine|create"
            r"|quote|name|come up)\b"
            r"|\b(?:haiku|poem|limerick|joke|riddle|slogan|tagline|story|novel|song|movie|film|fun fact)\b"
        ),
    ),
    (
        "compared",
        (r"\bdiffer(?:s|ence|ent|ences)?\b|\bthe same as\b|\bversus\b|\bvs\b|\b(?:better|worse|best)\b.*\bor\b"),
    ),
    (
        "small_talk",
        (
            r"^(?:hi|hello|hey|thanks|thank you|thx|cool|great|ok|okay|nice|perfect|good (?:morning|night|evening)|bye|lol"
            r"|never mind|got it|awesome|sounds good|see you|sorry)\b"
        ),
    ),
    (
        "sum",
        (
            r"\d+ ?(?:%|percent) of|\bsquare root\b|\d ?[-+*/x×] ?\d|\bprime\b|\brandom\b"
            r"|\bhow (?:many|much|long|far|big|old|high|tall) (?:\w+ ){1,3}(?:is|are|in|does|do"
            r"|has) (?:(?:there )?in )?(?:an?|one)\b"
        ),
    ),
    (
        "change",
        (
            r"\b(?:add|move|rename|turn|switch|send|email|mail|call|ring|phone|book|remind|update|change|raise"
            r"|lower|cancel|continue"
            r"|forward|check|compare|prepare|prep|schedule|order|pay|remove|delete|mark|set|put|resume|post|tag"
            r"|invite|log|bill|plan)\b"
        ),
    ),
    ("quoted", r"[\"“«].+[\"”»]|:\s"),
    (
        "past",
        (
            r"\b(?:did|was|were|last|yesterday|since|ago|recent(?:ly)?|so far|lately|again|still|yet|already|latest|due"
            r"|next|this (?:week|month|year|term|season))\b"
        ),
    ),
    (
        "world_fact",
        (
            r"\b(?:in the world|ever|of all time|in history|on earth|tallest|longest|biggest|fastest|largest"
            r"|highest|oldest|known for"
            r"|famous|country|countries|president|war|century|planet|species|for beginners|in general|generic"
            r"|usually|typical(?:ly)?)\b"
        ),
    ),
    ("which_is", r"^(?:who|what|which|where|when)(?: is| are| was| were|['’]s| does| do| makes| has)\b"),
    (
        "bare_of",
        (
            r"^(?:what|who|how)\b(?!.*\b(?:my|our|we|i|me|us)\b).*\b(?:of|in|between|from|to|by) (?!the\b|that\b"
            r"|this\b|stock\b)[a-z]"
        ),
    ),
    ("how_others", r"^(?:and |but |so )?how (?:do|does|did|can|could|would|should) (?!i\b|we\b|my\b|our\b)"),
    ("how_to", r"^(?:and |but |so )?how (?:do|can|could|would|should) (?:i|we|you|one)\b"),
    ("old_year", r"\b(?:1[0-9]{3}|20[01][0-9])\b"),
    ("suppose", r"^(?:if|suppose|imagine|what if|let['’]s say|would you rather)\b"),
    ("anybody", r"\b(?:someone|somebody|people|one|humans?|you|your|yourself|everyone|most|children|adults)\b"),
    ("is_it", r"^(?:is|are|can|do|does|should|could|would|was|were|did) (?:it|there|a|an|you|one|the|[a-z]+s)\b"),
    (
        "measure",
        r"\b(?:feet|foot|inch(?:es)?|cm|mm|km/h|mph|miles|pounds|lbs|ounces|lit(?:re|er)s|celsius|fahrenheit|acres?|binary)\b",
    ),
    (
        "ideas",
        r"\b(?:ideas?|tips?|examples?|ways|reasons|advice|words|phrases?|facts?|quotes?|names?) (?:for|of|to|about|on|that)\b",
    ),
    ("said_by_others", r"\bmy (?:\w+ )?(?:says?|said|asked|asks|thinks|claims|believes|told me)\b"),
    ("feel", r"\bi(?:['’]m| am| feel)\b|\bi (?:keep|always|never|love|hate|like|wonder)\b"),
    ("help", r"\b(?:help|teach|explain to) me\b|\bcan you\b|\bcould you\b|\bdo you\b|\bare you\b"),
    (
        "our_time",
        r"\b(?:today|tonight|tomorrow|this (?:morning|evening|week|month|year|weekend|quarter|term)|next week|right now)\b",
    ),
    ("owned", r"\b(?:do|did|have|has|had|are|were|am|was|will|should|can|may|must) (?:i|we)\b"),
    ("it_them", r"\b(?:it|them|they|that one|those|he|she|him|her|that)\b"),
)
"""Name and pattern of each cue. They are weighed, none decides alone."""

GOAL_FEATURES = (
    *(name for name, _ in CUES), "small_talk_only", "terse", "long", "known_names", "unknown_names", "timed", "best", "second",
    "top_cover", "top_same", "top_told", "top_begins", "top_meaning", "top_goal",
)  # fmt: skip
_PATTERNS = tuple(re.compile(pattern, re.IGNORECASE) for _, pattern in CUES)
_NAMES = re.compile(r"(?<![.!?:\"“] )(?<!^)\b[A-Z][a-z]+")
GOAL_CHARS_MAX = 2_000
"""What is wanted is said by then."""


def goal_cues(goal: str) -> tuple[float, ...]:
    """1 for each cue that is there, and how short or long the goal is."""
    text = " ".join(goal[:GOAL_CHARS_MAX].split())
    words = len(text.split())
    found = {name: pattern.search(text) is not None for (name, _), pattern in zip(CUES, _PATTERNS, strict=True)}
    only = found["small_talk"] and words <= 8 and not found["mine"] and "?" not in text
    return (*map(float, found.values()), float(only), float(words <= 3), float(words >= 15))


def names_in(goal: str) -> list[str]:
    """Words of a goal that are written as names are, but for those that begin a sentence."""
    return [match[0].lower() for match in _NAMES.finditer(goal[:GOAL_CHARS_MAX])]
