"""People: names that a conversation mentions as persons, by title, relation or what they do. Names only, no identities."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][a-zß-ɏ]+(?:[-'’][A-ZÀ-ÖØ-Þ]?[a-zß-ɏ]+)?"
_NAME = rf"(?P<name>{_CAPITALISED}(?: (?:(?:van|von|de|da|del|di|der|la|le|bin|al) )*{_CAPITALISED}){{0,2}})"
_RELATIONS = (
    "wife|husband|partner|girlfriend|boyfriend|fiancée?|mother|father|mum|mom|dad|sister|brother|son|daughter|aunt"
    "|uncle|cousin|niece|nephew|grandmother|grandfather|grandma|grandpa|friend|colleague|coworker|boss|manager|lead"
    "|neighbou?r|doctor|dentist|lawyer|landlord|teacher|assistant|client|roommate|frau|mann|freund(?:in)?|mutter"
    "|vater|schwester|bruder|sohn|tochter|chefin|chef|kolleg(?:e|in)|anwalt|anwältin|ärztin|arzt|femme|mari|ami|amie"
    "|mère|père|sœur|frère|fils|fille|collègue|avocate?|médecin|esposa|esposo|mujer|marido|amig[oa]|madre|padre"
    "|hermana|hermano|hija|hijo|jef[ea]|abogad[oa]|médic[oa]"
)
_ACTS = (
    "said|says|told|asked|asks|wants|wanted|will|would|agreed|called|wrote|sent|thinks|suggested|mentioned|confirmed"
    "|replied|prefers|likes|loves|hates|works|lives|owns|handles|needs|promised|offered|insists|signed|approved"
    "|booked|sagt|sagte|meint|hat|will|möchte|kommt|a dit|veut|pense|dice|dijo|quiere|tiene"
)
_TITLES = "Mr|Mrs|Ms|Mx|Dr|Prof|Herr|Frau|Mme|Mlle|Monsieur|Madame|Sr|Sra|Señora?|Don|Doña|Sir|Judge|Captain|Chef"
_ADDRESSES = (
    "ask|asked|tell|told|call|called|email|emailed|text|meet|met|meeting|invite|ping|thank|remind|contact|frag|ruf|triff"
    "|demande à|appelle|llama a|pregunta a"
)
_WHOSE = "my|our|his|her|their|the|meine?|unsere?|mon|ma|mi|nuestr[oa]"
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:{_TITLES})\.? {_NAME}",
        rf"\b(?i:{_WHOSE}) (?i:[\w-]+ )?(?i:{_RELATIONS}),? (?i:is |called |named |heißt |s'appelle |se llama )?{_NAME}",
        rf"{_NAME},? (?i:my|our|his|her|the|meine?|mon|ma|mi) (?i:[\w-]+ )?(?i:{_RELATIONS})\b",
        rf"\b(?i:{_ADDRESSES}) {_NAME}",
        rf"(?:^|[.!?,;] |\band |\bthat |\bbut |\bund |\bet |\by ){_NAME} (?:{_ACTS})\b",
        rf"\b(?i:my name is|i'm|i am|call me|ich heiße|je m'appelle|me llamo) {_NAME}",
        rf"\bwith {_NAME} (?:from|at|in) (?:legal|finance|sales|marketing|ops|engineering|accounting|support|HR|IT)\b",
        r"(?:[的是和跟给叫请下の]|^|(?<![\u4e00-\u9fff]))(?P<name>[\u4e00-\u9fff]{1,3}|[ァ-ヴー]{2,8}|[\u3040-\u309f]{2,4})(?:先生|女士|小姐|老师|经理|さん|様|くん|ちゃん|氏)",
        r"(?P<name>[가-힣]{2,3})(?: ?씨|님)",
    )
)
_OTHER_WORDS = (
    "Mr Mrs Ms Mx Dr Prof Herr Frau Mme Mlle Monsieur Madame Sr Sra Don Sir Judge Captain Chef "
    "I The This That It He She We They You There What When Where Which Who Why How Please If And But So Then Also My "
    "Our His Her Their Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June "
    "July August September October November December English German French Spanish Ich Wir Sie Das Die Der Es Je Il "
    "Elle On Nous El La Ella Yes No Ok Okay Everyone Nobody Someone Nothing Everything Let Not Sorry Thanks Google "
    "Amazon Slack Python Postgres Linux "
)
_NOT_NAMES = frozenset(_OTHER_WORDS.split())
PEOPLE_MAX = 12


def people_of(sentences: Iterable[str]) -> list[str]:
    """Names of persons, those named most often first; a short form of a name already there is the same person."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        for name in names_in(sentence):
            counts[name] += 1
    names = [name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    return [name for name in names if not any(name != other and name in other.split() for other in names)][:PEOPLE_MAX]


def names_in(sentence: str) -> list[str]:
    """Names of persons in one sentence, in order, each once."""
    found: dict[str, int] = {}
    for pattern in _PATTERNS:
        for match in pattern.finditer(sentence[:1_000]):
            words = match["name"].split()
            while words and words[-1] in _NOT_NAMES:
                words.pop()
            if words and words[0] not in _NOT_NAMES:
                found.setdefault(" ".join(words), match.start("name"))
    return sorted(found, key=found.__getitem__)
