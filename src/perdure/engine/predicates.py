"""What a clause says of its subject: a table of predicates, each with the pattern that follows the subject, and its attribute.

A pattern is written once for `I` and for `she`: `<live>` is `live` after the one and `lives` after the other, `<be>` is `'m` or
`is`. It has to match right behind the subject, so a modal, a doubt or a reporting verb in between leaves nothing to match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perdure.engine.attributes import SINGLE_VALUED, is_single_valued
from perdure.engine.factwords import (
    COMMON_ORG,
    DIET,
    JOB,
    LANGUAGE,
    NAME,
    ORG,
    PLACE,
    third_person,
)

__all__ = ["PREDICATES", "SINGLE_VALUED", "Predicate", "is_single_valued"]


@dataclass(frozen=True, slots=True)
class Predicate:
    """One way to say something of a subject. Groups named after attributes hold their values."""

    own: re.Pattern[str]
    """Behind `I` or `we`."""
    other: re.Pattern[str]
    """Behind a name, `she`, `my sister`."""
    ended: bool = False
    changed: bool = False
    """It tells of a change, so a time beside it is when that happened."""
    confidence: float = 0.9


_ADVERBS = (
    r"(?: (?:currently|now|just|really|actually|still|also|finally|recently|already|mostly|mainly|"
    r"happily|officially|both|all|absolutely|totally|definitely|"
    r"honestly|personally|generally|typically|normally|basically|presently|temporarily|truly|"
    r"particularly|especially|much|very much|have|has|since|then))*"
)
_END = (
    r"(?=\s*(?:[.,;:!()—–■…\n]|$)|\s+(?:and|but|because|so|since|when|while|although|though|for|with|"
    r"at|in|on|from|that|which|who|as|these|this|now|every|right|"
    r"until|than|over|instead|too|anymore|any more|lately|last|today|yesterday|currently|where|there|"
    r"here|living|working|based|after|before|\d|-|if|already|again|next|by|per|unless|or|rather)\b|"
    r"\s+[-–—(])"
)
_THING = (
    r"(?![-–—])(?!(?:it|this|that|these|those|you|your|the|how|when|what|where|who|him|her|them|his|"
    r"their|me|us|to be honest|myself|if|one|its)\b)(?:[^.,;:!?()—–■…\n]|(?<=\d)[:.](?=\d)){2,80}?"
)
# Where a liking ends: with the clause, so that `hiking in the Alps` stays whole.
_CLOSE = (
    r"(?=\s*(?:[,;!?()—–■…\n]|:(?!\d)|\.(?!\d)|$)|\s+(?:too|but|because|so|since|when|while|although|"
    r"though|these days|which|who|if|unless|anymore|any more|lately|right now|though|until|"
    r"(?:and|or) (?:i|my|we|he|she|it|am|have|usually|can|don['’]t|would|really|so|that|the fact|also|"
    r"then|our|they|their|there|you|love|like|enjoy|hate|prefer|work|live|want|need|do|was|had|will|"
    r"['’]m)(?![\w]))(?!\w)|\s+[-–—(])"
)
_LOWER = (
    r"(?!(?:the|a|an|my|our|your|his|her|fear|denial|hope|peace|there|here|town|general|person|front|"
    r"this|that|it|one|same|two|bed)\b)[a-zà-ÿ]+(?: [a-zà-ÿ]+)?(?=\s*(?:[.,;!]|$)| (?:and|but|now|"
    r"since|with|for)\b)"
)

_OWN_FORMS = {
    "be": r"(?:\s*['’]?m| am|['’]re| are)",
    "have": r"(?:\s*['’]?ve| have)",
    "dont": r" do(?:n['’]?t| not)",
    "isnt": r"(?:\s*['’]?m not| am not|['’]re not| are not| aren['’]t)",
    "was": r" (?:was|were)",
    "my": r"(?:my|our)",
}
_OTHER_FORMS = {
    "be": r"(?:['’]s| is)",
    "have": r"(?:['’]s| has)",
    "dont": r" does(?:n['’]?t| not)",
    "isnt": r"(?:['’]s not| is not| isn['’]t)",
    "was": r" was",
    "my": r"(?:his|her|their)",
}


def _both(pattern: str, **traits: object) -> Predicate:
    own = re.sub(r"(?<!\?P)<(\w+)>", lambda match: _OWN_FORMS.get(match[1], match[1]), pattern)
    other = re.sub(r"(?<!\?P)<(\w+)>", lambda match: _OTHER_FORMS.get(match[1], third_person(match[1])), pattern)
    return Predicate(re.compile(own), re.compile(other), **traits)  # type: ignore[arg-type]


_IN = rf"(?P<lives_in>{PLACE}|{_LOWER})"
_AT = rf"(?P<works_at>{ORG}|{COMMON_ORG})"
_AS = rf"(?: as (?:a|an|the|their|its)? ?(?P<job_title>{JOB}|[a-z][\w-]+(?: [\w-]+){{0,3}}?(?={_END[3:-1]})))?"
_NAMED = NAME
_STUDY = rf"(?P<studies_at>{ORG})"
_GONE = r"(?:,? (?:any ?more|any longer|now|these days))"

# Order matters: the first that matches holds.
PREDICATES: tuple[Predicate, ...] = (
    # Where somebody lives.
    _both(
        rf"(?:<dont>(?: actually| really)? live| no longer <live>) (?:in|at) {_IN}{_GONE}",
        ended=True,
        changed=True,
        confidence=0.95,
    ),
    _both(rf" no longer <live> (?:in|at) {_IN}", ended=True, changed=True, confidence=0.95),
    _both(rf" used to live in {_IN}", ended=True, confidence=0.95),
    _both(
        rf"(?:<have>)?{_ADVERBS} (?:moved|relocated) (?:away from|out of) {_IN}(?: to (?P<then>{PLACE}))?",
        ended=True,
        changed=True,
    ),
    _both(
        rf"(?:<have>)?{_ADVERBS} (?:moved|relocated)(?: back)?(?: here)?(?: from {PLACE})? to {_IN}(?! "
        r"(?:team|project|department|office)\b)",
        changed=True,
        confidence=0.95,
    ),
    _both(rf"(?:<have>)?{_ADVERBS} been living in {_IN}", confidence=0.95),
    _both(rf"(?:<have>){_ADVERBS} (?:lived|settled) in {_IN}(?= (?:since|for|all|my|ever))", confidence=0.95),
    _both(rf"(?:<have>)?{_ADVERBS} settled(?: down)? in {_IN}", changed=True),
    _both(rf"{_ADVERBS} lived in {_IN}", ended=True, confidence=0.85),
    _both(
        rf"(?:<be>)?{_ADVERBS} (?:<live>|living|based|located|residing|reside|resides)(?: out| over| "
        rf"right)?(?: here)? in {_IN}",
        confidence=0.95,
    ),
    _both(rf"<be>{_ADVERBS} based (?:in|out of) {_IN}", confidence=0.95),
    _both(rf" <call> {_IN} home"),
    # Where somebody comes from.
    _both(
        rf"(?:<be>{_ADVERBS}(?: originally)? from| (?:originally )?<come> (?:originally )?from|(?:<was>)? "
        rf"(?:born and raised|raised|born|grew up)(?: and (?:raised|grew up))? in) (?P<from>{PLACE}|"
        rf"{_LOWER})(?!['’]s)(?: in (?P<birth_year>(?:19|20)\d\d))?"
    ),
    # Work.
    _both(rf" no longer <work> (?:at|for) {_AT}", ended=True, changed=True, confidence=0.95),
    _both(rf"<dont> work (?:at|for) {_AT}{_GONE}", ended=True, changed=True, confidence=0.95),
    _both(rf" used to (?:work|be) (?:at|for|with) {_AT}{_AS}", ended=True, confidence=0.95),
    _both(rf" used to (?:work as|be) (?:a|an|the) (?P<job_title>{JOB})(?: (?:at|for) {_AT})?", ended=True, confidence=0.95),
    _both(
        rf"(?:<have>)?{_ADVERBS} (?:quit|left|resigned from|lost|been laid off from|got laid off from|got "
        r"laid off by|was laid off from|was laid off by|got fired from|was let go from|was let go by|"
        r"retired from) (?:my|his|her|our|the) (?:old )?(?:job|position|role|post) (?:at|with|as (?:a|an|"
        rf"the) [\w -]+? at) {_AT}",
        ended=True,
        changed=True,
        confidence=0.95,
    ),
    _both(
        rf"(?:<have>)?{_ADVERBS} (?:resigned from|been laid off (?:from|by)|got laid off (?:from|by)|was "
        rf"laid off (?:from|by)|got fired from|was let go (?:from|by)|retired from) {_AT}",
        ended=True,
        changed=True,
    ),
    _both(rf"(?:<have>)?{_ADVERBS} left {_AT} (?:to join|for) (?P<next_org>{ORG})", changed=True, confidence=0.9),
    _both(
        rf"(?:<have>)?{_ADVERBS} (?:joined|started (?:working )?(?:at|for|with)|started (?:a|my|his|her) "
        rf"(?:new )?(?:job|role|position)(?: as (?:a|an|the) (?P<started_as>{JOB}))? (?:at|with)|(?:got|"
        r"took|accepted|landed) (?:a|my|his|her) (?:new )?(?:job|role|position) (?:at|with)|was hired "
        rf"(?:by|at)|got hired (?:by|at)) {_AT}(?! (?:call|meeting|gym|club|server|premium|trial|yesterday "
        rf"for the)\b){_AS}(?![^.;!?]*\b(?:trial|premium|subscription|account|discord)\b)",
        changed=True,
    ),
    _both(rf"<have>{_ADVERBS} (?:worked|been working|been) (?:at|for|with) {_AT}{_AS}(?= (?:since|for)\b)", confidence=0.9),
    _both(rf"{_ADVERBS} worked (?:at|for) {_AT}{_AS}", ended=True, confidence=0.8),
    _both(
        rf"(?:<be>)?{_ADVERBS} (?:<work>|working|employed)(?: remotely| part-time| full-time| nights)?(?: "
        rf"in (?:[\w&]+ ){{1,3}}?)? ?(?:over )?(?:(?<= )at|(?<= )for|(?<= )by) {_AT}{_AS}",
        confidence=0.95,
    ),
    _both(
        rf"(?:<be>)?{_ADVERBS} (?:<work>|working|employed) as (?:a |an |the )?(?P<job_title>{JOB}|"
        rf"[a-z][\w-]+(?: [\w-]+){{0,3}}?{_END})(?: (?:at|for|with) {_AT})?",
        confidence=0.95,
    ),
    _both(
        rf"(?:<have>)?{_ADVERBS} (?:(?:got|been|was|were|just got) promoted to|became|become|took over as|"
        rf"started as) (?:a |an |the )?(?P<job_title>{JOB})(?: (?:at|for) {_AT})?",
        changed=True,
    ),
    _both(
        rf"<be>{_ADVERBS} (?:a |an |the |their |its )?(?i:student|undergrad|undergraduate|freshman|"
        r"sophomore|junior|senior|(?:[a-z]+ )?grad student|(?:[a-z]+ )?student|phd candidate|doctoral "
        rf"candidate|master['’]?s student) at {_STUDY}"
    ),
    _both(
        rf"<be> {_NAMED}, (?:and )?(?:a|an|the) (?P<job_title>{JOB})(?: (?:at|for|with) {_AT}| from "
        rf"(?P<from>{PLACE})| (?:based |living )?in (?P<lives_in>{PLACE}))?{_END}"
    ),
    _both(rf"(?:<have>) been (?:working as )?(?:a|an|the) (?P<job_title>{JOB})(?: (?:at|for|with) {_AT})?(?= (?:for|since)\b)"),
    _both(
        rf"<be>{_ADVERBS} (?P<employment>retired|unemployed|self-employed|between jobs|on (?:maternity|"
        rf"paternity|parental) leave|on sabbatical){_END}"
    ),
    _both(rf"(?:<have>)?{_ADVERBS} (?P<employment>retired){_END}", changed=True),
    _both(rf" (?:<teach>)(?: [\w ]{{3,30}}?)? at {_AT}"),
    _both(
        rf" <do> (?:the )?(?:[a-z]+ ){{0,2}}?(?:marketing|sales|design|research|accounting|support|"
        rf"consulting|communications|engineering|pr|hr|legal|logistics|qa|it) (?:for|at) {_AT}"
    ),
    _both(rf" <freelance> as (?:a|an) (?P<job_title>{JOB})"),
    _both(
        rf"<be>{_ADVERBS} (?:a |an |the |one of the )?(?P<job_title>{JOB})(?: (?:at|for|with|of) "
        rf"(?P<works_at>{ORG})| (?:at|for|with) (?P<workplace>{COMMON_ORG})| by (?:trade|profession|"
        rf"training))?(?: (?:living|based) in (?P<lives_in>{PLACE}))?{_END}"
    ),
    _both(
        r" (?:<run>|<own>|<lead>|founded|<manage>|co-?founded|started) (?:a |an |my |our |her |his |the "
        rf")?(?:[\w-]+ ){{0,2}}?(?:company|startup|business|firm|studio|agency|shop|store|bakery|"
        r"restaurant|cafe|café|nonprofit|bookstore|brewery|farm|gym|practice|consultancy|foundation)(?: "
        rf"called|,| named) (?P<founder_of>{ORG})",
        confidence=0.9,
    ),
    # Study.
    _both(
        rf"(?:<have>)?{_ADVERBS} (?:graduated from|finished (?:my|his|her) (?:degree|studies|phd|"
        rf"master['’]?s|bachelor['’]?s) at|studied(?: [\w ]{{2,30}})? at) {_STUDY}",
        ended=True,
    ),
    _both(
        rf"(?:<be>)?{_ADVERBS} (?:<study>|studying|majoring in|<major> in|doing (?:a|my|his|her) (?:phd|"
        rf"master['’]?s|bachelor['’]?s|degree)|enrolled)(?: (?:in )?[\w ]{{2,40}}?)? at {_STUDY}"
    ),
    # Age, birth.
    _both(rf"<be>{_ADVERBS} (?P<age>\d{{1,3}})(?:[ -]years?[ -]old| y/?o| yrs old)(?! \w+ing\b)"),
    _both(
        rf"(?:<have>)?{_ADVERBS} turned (?P<age>\d{{1,3}})(?=\s*(?:[.,;!)]|$)| (?:today|yesterday|last|"
        r"this|on|in|and|years)\b)",
        changed=True,
    ),
    _both(r"<be>(?: now| only| already)? (?P<age>\d{1,3})(?=\s*(?:[.,;!)]|$)| (?:and|but|now|today)\b)", confidence=0.8),
    _both(
        r"<was> born on (?:the )?(?P<birthday>(?=[^.;!?]{0,20}\d)[^.,;!?]{3,24}?(?:,? "
        r"\d{4})?)(?=\s*(?:[.;!]|,(?! \d)|$)| (?:in|at|and|so)\b)",
        confidence=0.95,
    ),
    _both(r"<was> born (?:back )?in (?P<birth_year>(?:19|20)\d\d)(?!\w)", confidence=0.95),
    # Food and health.
    _both(
        rf"(?:<isnt>(?: a)?|<be> no longer(?: a)?| (?:stopped|quit) being(?: a)?) (?P<diet>{DIET}){_GONE}",
        ended=True,
        changed=True,
    ),
    _both(rf"(?:<be> no longer(?: a)?| (?:stopped|quit) being(?: a)?) (?P<diet>{DIET})", ended=True, changed=True),
    _both(
        rf"(?:(?:<be>|<have> been|<have> gone| went|(?:<have>)? (?:recently )?became| turned){_ADVERBS} "
        rf"(?:a |an |strictly |fully |mostly )*(?P<diet>{DIET}))(?![\w-]| (?!and\b|but\b|so\b|now\b|"
        r"since\b|for\b|by\b|because\b|these\b|at\b|as\b|who\b|too\b|though\b|this\b|last\b|in\b|-)\w)"
    ),
    _both(
        rf"<be>{_ADVERBS} (?:severely |deathly |very |really |badly |mildly |highly )*allergic to "
        r"(?P<allergy>(?!(?:stupid|mornings?|mondays?|people|work|drama|nonsense|questions|math|maths|"
        rf"exercise|fun|happiness|bad|my|meetings)\b){_THING}){_END}",
        confidence=0.95,
    ),
    _both(
        r"(?:<have>| have| has| got| suffers? from) (?:a |an )?(?:severe |bad |serious |mild |terrible "
        r")*(?P<allergy>[a-z]+(?: [a-z]+)?) (?:allergy|allergies)(?!\w)",
        confidence=0.9,
    ),
    _both(
        r"(?:<dont>| can['’]?t| cannot)(?: really| usually)? (?P<verb>eat|drink) (?P<avoids>(?!(?:much|"
        r"enough|breakfast|lunch|dinner|well|out|before|after|at|alone|anything|that|any more|anymore|a "
        rf"lot)\b){_THING}){_CLOSE}"
    ),
    _both(
        r"(?:<have>)? (?:stopped|quit|gave up|given up) (?P<verb>eating|drinking) (?P<avoids>(?!(?:much|"
        rf"enough|so|out)\b){_THING}){_CLOSE}",
        changed=True,
    ),
    # Languages.
    _both(
        r" (?:also |fluently |both )*<speak> (?:(?:fluent|native|some|a little|a bit of|basic|both|decent|"
        rf"good|conversational) )*(?P<speaks>{LANGUAGE}(?:(?:, and |, | and | & )(?:(?:fluent|native|some|"
        rf"a little|a bit of|basic) )*{LANGUAGE})*)"
    ),
    _both(rf"<be>{_ADVERBS} fluent in (?P<speaks>{LANGUAGE}(?:(?:, and |, | and )(?:some )?{LANGUAGE})*)"),
    _both(
        rf"(?:<be>|(?:<have>)?{_ADVERBS} (?:been|started)){_ADVERBS} learning (?:how )?(?P<learning>(?:to "
        rf")?(?!a lot|about|that|from|more|as|how)[\w -]{{3,40}}?){_END}"
    ),
    _both(
        r" (?:also )?<play> (?:the )?(?P<plays>(?:acoustic |electric |bass )?(?:guitar|piano|violin|cello|"
        r"drums|bass|flute|trumpet|saxophone|ukulele|harp|clarinet|viola|banjo|accordion|organ|"
        r"keyboard))(?!\w)"
    ),
    _both(r"(?:<have>)? (?P<deceased>died|passed away)(?!\w)", changed=True),
    # Likes.
    _both(
        rf"(?:<isnt>{_ADVERBS} (?:a |much of a )?(?:big |huge )?(?:fan of|fond of|into|keen on)|<dont>(?: "
        rf"really| particularly| actually| even)? (?:like|enjoy|care for)|{_ADVERBS} (?:<hate>|<dislike>|"
        r"<loathe>|<detest>|can['’]?t stand|cannot stand|can not stand|<despise>)) "
        rf"(?P<dislikes>{_THING}){_CLOSE}"
    ),
    _both(
        rf"<be>{_ADVERBS} (?:a )?(?:big |huge |massive |lifelong )?(?:fan of|fond of|(?:really |very |so "
        rf")?into|keen on|crazy about|passionate about|obsessed with) (?P<likes>{_THING}){_CLOSE}"
    ),
    _both(
        rf"{_ADVERBS} (?:<like>|<love>|<enjoy>|<adore>) (?P<likes>(?!to (?:think|know|see|hear|help|add|"
        rf"point)\b|being (?:asked|told)){_THING}){_CLOSE}"
    ),
    _both(
        rf"{_ADVERBS} <prefer> (?P<prefers>(?!(?:not|if|that|option|to (?:be honest|think)|number|first|"
        rf"second|version)\b){_THING}){_CLOSE}"
    ),
    # Who somebody is.
    _both(
        rf"<be>{_ADVERBS} (?P<trait>(?:a|an) (?:total |real |huge |big |bit of a )?(?:morning person|night "
        r"owl|early bird|early riser|dog person|cat person|night person|introvert|extrovert|perfectionist|"
        r"minimalist|light sleeper|heavy sleeper|homebody|people person|bookworm|foodie|lefty|teetotaller|"
        r"non-smoker|smoker|only child|single (?:mom|dad|mother|father|parent)|left-hander|vegetable "
        r"gardener)|left-handed|right-handed|colou?r-?blind|dyslexic|diabetic|hard of hearing|a type 1 "
        r"diabetic)"
    ),
    _both(
        rf"<be>{_ADVERBS} (?P<marital_status>married|divorced|engaged|single|widowed|"
        r"separated)(?=\s*(?:[.,;!)]|$)| (?:and|but|now|since|with (?:two|three|four|no|\d))\b)"
    ),
    _both(
        r"(?:<have>| have| has)(?: got)? (?P<children>(?:two|three|four|five|six|\d{1,2}|no|twin) "
        r"(?:young |little |small |grown |teenage |adult )*(?:kids|children|sons|daughters|boys|girls))"
    ),
    _both(
        rf"<be>{_ADVERBS} (?:a )?(?:board |active |proud |founding )?(?:member of|on the board of|on the "
        rf"committee of|active in|involved with) (?P<member_of>{ORG})"
    ),
    _both(
        rf" (?:also )?(?:<volunteer>|<sing>|<play>) (?:at|for|with|in) (?P<member_of>{ORG}|(?:the|a) "
        r"(?:local |city |community )?(?:food bank|animal shelter|hospice|shelter|choir|orchestra|soup "
        r"kitchen|library|community garden|homeless shelter|red cross|football club|soccer team|"
        r"volleyball team))"
    ),
    _both(
        rf"<be>{_ADVERBS} (?:in charge of|responsible for)(?: all)?(?: of)?(?: (?:the|our|all))? "
        r"(?P<handles>(?!it\b|this\b|that\b|them\b|everything\b|my\b|a team\b)[a-zA-Z][\w "
        rf"/&-]{{2,40}}?){_END}"
    ),
    _both(
        r" (?:also )?(?:<handle>|<oversee>|looks? after|takes? care of)(?: all)?(?: of)?(?: (?:the|our|"
        r"all))? (?P<handles>(?!it\b|this\b|that\b|a lot|things|me\b|him\b|her\b|them\b|everything|"
        rf"my\b)[a-zA-Z][\w /&-]{{2,40}}?){_END}",
        confidence=0.85,
    ),
)
