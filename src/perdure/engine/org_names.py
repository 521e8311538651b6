"""Names of organisations: legal forms are dropped, acronyms are suggestions, sister companies are two."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from perdure.engine.likeness import Findings, Likeness
from perdure.engine.spelling import folded, plain, word_map, word_set
from perdure.engine.terms import compare_terms, is_acronym, numbers_of, words_of

# One line is one legal form in its spellings, which are words; dots are gone, and `&` is `and`.
_FORM_LINES = """
inc, incorporated
corp, corporation
co, company
ltd, limited
co ltd, company limited
pvt ltd, private limited, pte ltd, pvt limited
pty ltd, proprietary limited, pty limited, pty
plc, public limited company
llc, l l c, limited liability company
llp, limited liability partnership
lp
gmbh, gesellschaft mit beschränkter haftung, gmbh i g, mbh
gmbh and co kg, gmbh und co kg, gmbh co kg
ag, aktiengesellschaft
ag and co kg, ag and co kgaa, kgaa
kg
ug, ug haftungsbeschränkt
ohg
gbr
ev
eg
se
sa, sociedad anónima, société anonyme, sociedade anônima
sas, sasu
sarl, sàrl
spa, società per azioni
srl, srls, società a responsabilità limitata
snc
nv
bv
vof
ab, aktiebolag
as
asa
aps
oy
oyj
hf
ehf
sp z oo, spółka z oo, sp zoo
sp j
sro, spol s ro
as
kft
zrt, nyrt
doo
dd
ad
ood, eood
srl
ltda, limitada
eireli
sl, slu, sociedad limitada
sa de cv, sab de cv, s de rl de cv
kk, kabushiki kaisha
sdn bhd, bhd
tbk
jsc, ojsc, cjsc, pjsc
ооо
оао, ао, пао, зао
тов
uab
sia
oü
ltee, ltée
aş, anonim şirketi
dotcom
dotnet
dotorg
dotio
dotai
"""
_FORMS: dict[tuple[str, ...], str] = {
    tuple(folded(plain(spelling)).split()): line.split(",")[0]
    for line in _FORM_LINES.strip().splitlines()
    for spelling in line.split(",")
}
_FORM_WORDS_MAX = max(map(len, _FORMS))
_EAST_ASIAN = re.compile(
    "(株式会社|有限会社|合同会社|股份有限公司|有限责任公司|有限公司|股份公司|주식회사|유한회사|\\(株\\)|\\(주\\)|㈜)"
)
# Forms that stand in front.
_LEADING = frozenset({"ооо", "оао", "ао", "пао", "зао", "тов", "pt", "ип"})
_SPELLED = word_map(
    "intl=international univ=university dept=department bros=brothers assoc=association assn=association natl=national "
    "govt=government inst=institute mfg=manufacturing st=saint ste=saint ctr=center hosp=hospital svcs=services "
    "svc=services mgmt=management labs=laboratories lab=laboratory grp=group hldgs=holdings "
    "technologies=technology intnl=international pharma=pharmaceuticals ind=industries eng=engineering univers=university"
)
_KINDS = word_set(
    "group holding holdings technology software systems solutions services international global worldwide industries "
    "enterprises airlines airways air motors motor bank coffee cafe restaurant hotel pharmaceuticals electronics "
    "university college consulting insurance energy media networks platforms entertainment gmbh gruppe gruppo grupo "
    "groupe stores supermarket "
)
_REGIONS = word_set(
    "uk us usa europe eu america americas asia apac emea india china japan germany deutschland france canada australia africa "
    "brasil brazil mexico iberia nordic nordics"
)
_ENDINGS = {"system": "systems", "solution": "solutions", "service": "services", "network": "networks", "tech": "technology"}


@dataclass(frozen=True, slots=True)
class Org:
    """A name taken apart: the words that make it, its legal forms, and all words as they stand."""

    words: tuple[str, ...]
    forms: frozenset[str]
    whole: tuple[str, ...]


@lru_cache(maxsize=16_384)
def org(label: str) -> Org:
    """Take a bounded label apart."""
    text = re.sub(r"\b(\w)/(\w)\b", r"\1\2", plain(label))
    forms = {match[0] for match in _EAST_ASIAN.finditer(text)}
    text = _EAST_ASIAN.sub(" ", text)
    # A domain's ending is set off, so that it is dropped like a legal form.
    words = words_of(re.sub(r"(?<=\w)\.(com|net|org|io|ai)\b", r" dot\1", text), _SPELLED)
    if len(words) > 1 and words[0] == "the":
        words = words[1:]
    whole = tuple(words)
    if len(words) > 1 and words[0] in _LEADING:
        forms.add(_FORMS.get((words[0],), words[0]))
        words = words[1:]
    while (size := _form_at_end(words)) and len(words) > size:
        forms.add(_FORMS[tuple(map(folded, words[-size:]))])
        words = words[:-size]
        if len(words) > 1 and words[-1] == "and":
            words = words[:-1]
    last = _ENDINGS.get(words[-1], words[-1]) if len(words) > 1 else ""
    return Org((*words[:-1], last) if last else tuple(words), frozenset(forms), whole)


def compare_orgs(one: str, other: str) -> Likeness:
    """The verdict on two labels of organisations."""
    a, b = org(one), org(other)
    findings = Findings()
    if not a.words or not b.words:
        findings.deny("no words to compare")
    elif numbers_of(a.words) != numbers_of(b.words):
        findings.deny("numbers differ")
    else:
        if not (a.forms <= b.forms or b.forms <= a.forms):
            findings.doubt("legal forms differ", 0.7)
        elif a.forms != b.forms:
            findings.note("legal form dropped")
        elif a.forms:
            findings.note("legal form spelled out")
        regions_a, regions_b = (frozenset(who.words[1:]) & _REGIONS for who in (a, b))
        if regions_a and regions_b and regions_a != regions_b:
            findings.deny("regions differ")
        else:
            acronym = is_acronym(a.words, b.whole) or is_acronym(b.words, a.whole)
            compare_terms(a.words, b.words, findings, kinds=_KINDS | _REGIONS, acronym=acronym, sure_slips=True)
    return findings.verdict()


def _form_at_end(words: list[str]) -> int:
    """How many of the last words are a legal form."""
    for size in range(min(_FORM_WORDS_MAX, len(words) - 1), 0, -1):
        if tuple(map(folded, words[-size:])) in _FORMS:
            return size
    return 0
