"""Words that facts are made of: relations, occupations, pets, diets, languages, and capitalised words that are no names."""

from __future__ import annotations

import re

from perdure.engine.timetables import word_set

CAPITALS = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĖĘĚĞĢĪİĶŁĻŃŅŇŌŐŒŘŚŞŠŤŪŮŰŲŹŻŽ"
_CAP = rf"[{CAPITALS}][\w’'-]*(?<!['’]s)(?<!['’])"
NAME = (
    rf"(?:(?:Mr|Mrs|Ms|Mx|Dr|Prof|Herr|Frau)\.? )?{_CAP}(?: (?:(?:van|von|de|da|del|di|der|den|la|le|"
    rf"bin|al|ten) )*{_CAP}){{0,2}}"
)
# A word of a place or a company: `Austin`, `St. Louis`, `D.C.`, `King's` before another one.
_WORD = rf"(?:(?:[{CAPITALS}]\.){{2,4}}|(?:St|Mt|Ft|Ste)\. ?{_CAP}|{_CAP}(?:['’]s(?= [{CAPITALS}]))?)"
PLACE = (
    r"(?:the |downtown |central |uptown |upstate |(?:north|south|east|west|north-?east|north-?west|"
    r"south-?east|south-?west)(?:ern)? |rural |suburban )?"
    rf"{_WORD}(?:[ -](?:(?:de|la|del|of|upon|am|sur|do|da|dos|das|and the) )?{_WORD}){{0,3}}"
    rf"(?:, (?:the )?{_WORD}(?: {_WORD})?(?=\s*(?:[.,;!)?]|$|\s(?:and|but|with|since|for|now|right|"
    r"these|this|last|in|because|so|where|near|as|at|a|about|when|until|again|too)\b)))?"
)
_ORG_WORD = rf"(?:(?:[{CAPITALS}]\.){{2,4}}|[{CAPITALS}0-9][\w’'&+.-]*(?<![.'’]))"
ORG = rf"(?:the )?{_ORG_WORD}(?:(?: (?:&|of|and|for|the|de) | ){_ORG_WORD}){{0,4}}(?:,? (?:Inc|Corp|Ltd|LLC|GmbH|Co)\b\.?)?"
COMMON_ORG = (
    r"(?:a|an|my own|our own|the local|the city|the) (?:[\w-]+ ){0,3}?(?:hospital|startup|bank|school|"
    r"university|college|company|firm|agency|studio|clinic|library|museum|"
    r"restaurant|cafe|café|bakery|bookstore|bookshop|shop|store|nonprofit|non-profit|ngo|lab|"
    r"laboratory|factory|hotel|airline|law firm|newspaper|"
    r"daycare|kindergarten|post office|police|army|navy|government|nursing home|pharmacy|brewery|farm|"
    r"garage|gym|consultancy|practice|council|ministry|embassy|airport|warehouse|call cent(?:er|re)|"
    r"zoo|bar|salon)"
)

# Relation words with the pronoun they take: she, he, or either.
_FEMALE = (
    "mother mom mum mama mommy grandmother grandma nana sister wife girlfriend fiancée daughter aunt "
    "auntie niece stepmother stepmom "
    "stepsister stepdaughter mother-in-law sister-in-law daughter-in-law ex-wife ex-girlfriend "
    "goddaughter godmother granddaughter"
)
_MALE = (
    "father dad papa daddy grandfather grandpa granddad brother husband boyfriend fiancé son uncle nephew stepfather stepdad "
    "stepbrother stepson father-in-law brother-in-law son-in-law ex-husband ex-boyfriend godson godfather grandson"
)
_EITHER = (
    "partner spouse fiance cousin friend colleague coworker co-worker boss manager supervisor "
    "cofounder co-founder roommate flatmate "
    "housemate neighbor neighbour landlord landlady doctor dentist therapist lawyer accountant "
    "teacher tutor coach trainer mentor mentee "
    "assistant intern student client customer investor advisor adviser professor classmate teammate "
    "babysitter nanny vet kid child baby "
    "twin sibling parent grandparent ex report lead ceo cto coo cfo designer developer engineer "
    "contractor agent broker barber hairdresser "
    "physiotherapist psychologist gp pediatrician paediatrician nurse pastor priest rabbi employee "
    "business-partner stepchild godchild guide instructor "
    "co-author editor publisher supplier bandmate guitarist drummer singer"
)
GENDERS = {
    **dict.fromkeys(_FEMALE.split(), "f"),
    **dict.fromkeys(_MALE.split(), "m"),
    **dict.fromkeys(_EITHER.split(), ""),
}
GENDERS["landlady"] = "f"
PARTNERS = word_set("wife husband spouse partner fiancé fiancée fiance girlfriend boyfriend")
CHILDREN = word_set("son daughter kid child baby stepson stepdaughter")
BOSSES = word_set("boss manager supervisor")
# One of these alone, without a name, still tells who it is.
UNIQUE = word_set(
    "mother mom mum mama father dad papa wife husband spouse partner fiancé fiancée girlfriend "
    "boyfriend boss manager mother-in-law "
    "father-in-law stepmother stepfather stepdad stepmom cofounder co-founder landlord grandmother grandma grandfather grandpa "
    "sister brother son daughter roommate therapist doctor dentist twin ex-wife ex-husband mentor"
)
PARENT_NAMES = word_set("Mom Mum Dad Mama Papa Grandma Grandpa Nana Mother Father")
RELATION = "(?:" + "|".join(sorted((re.escape(word) for word in GENDERS), key=len, reverse=True)) + ")"
RELATION_ADJECTIVE = (
    r"(?:(?:best|older|younger|little|big|twin|new|dear|close|good|eldest|oldest|youngest|middle|"
    r"current|longtime|long-time|lovely|beloved|"
    r"amazing|technical|business|direct|direct-|line|team|product|engineering|personal|maternal|"
    r"paternal|only|first|second|third|other|great|"
    r"childhood|college|high school|work|gym|half-?|foster|adopted|tax|piano|guitar|violin|swimming|"
    r"tennis|running|yoga|spanish|french|german|"
    r"english|math|maths|family|one-year-old|two-year-old|\w+-year-old|\d{1,2}-year-old|\d{1,2} year old) )*"
)

PET = (
    r"(?:dog|puppy|cat|kitten|rabbit|bunny|parrot|budgie|hamster|guinea pig|horse|pony|goldfish|fish|"
    r"bird|turtle|tortoise|snake|lizard|gecko|ferret|chicken|goat|corgi|poodle|labrador|beagle|"
    r"retriever|golden retriever|husky|dachshund|tabby|greyhound|pug|axolotl|canary|cockatiel)"
)

# The last word of an occupation.
_JOB_HEADS = (
    "accountant actor actress actuary administrator advisor adviser agent analyst anesthesiologist "
    "architect archaeologist artist astronaut astronomer attorney auditor "
    "author baker banker barber barista bartender biochemist biologist bookkeeper botanist broker "
    "builder butcher carpenter cashier ceo cfo cto coo cmo chef chemist chiropractor "
    "cleaner clerk coach comedian composer conductor consultant contractor cook coordinator "
    "copywriter counselor counsellor courier curator dancer dentist "
    "designer detective developer dietitian director dj doctor driver ecologist economist editor "
    "educator electrician engineer entrepreneur estimator farmer "
    "filmmaker firefighter fisherman florist founder co-founder cofounder freelancer gardener "
    "geneticist geologist goldsmith governess hairdresser historian "
    "illustrator inspector instructor interpreter inventor investigator investor janitor jeweler "
    "jeweller joiner journalist judge lawyer lecturer librarian lifeguard "
    "linguist locksmith machinist manager marketer marketeer mathematician mechanic medic "
    "meteorologist midwife miner model mortician musician nanny neurologist "
    "neurosurgeon notary novelist nurse nutritionist officer operator optician optometrist painter "
    "paralegal paramedic pastor pathologist pediatrician paediatrician pharmacist "
    "photographer physician physicist physiotherapist pianist pilot planner plumber poet policeman "
    "policewoman politician potter principal producer professor "
    "programmer psychiatrist psychologist publicist radiologist radiographer ranger realtor "
    "receptionist recruiter reporter researcher restorer roofer sailor "
    "salesman salesperson saleswoman scientist sculptor seamstress secretary sergeant singer soldier "
    "solicitor statistician stylist supervisor surgeon surveyor "
    "tailor teacher technician technologist tester therapist trader trainer translator trucker tutor "
    "undertaker valuer vet veterinarian videographer "
    "vp waiter waitress welder writer zookeeper zoologist specialist strategist lead intern "
    "apprentice president vice-president partner owner executive assistant "
    "paraeducator contortionist magician violinist guitarist drummer cellist drummer electrician pm "
    "sre swe postdoc resident attendant guard bellhop brewer winemaker "
    "beekeeper practitioner anaesthetist anesthetist luthier blacksmith illustrator animator "
    "scheduler dispatcher steward stewardess"
)
JOB_HEAD = "(?:" + "|".join(sorted(set(_JOB_HEADS.split()), key=len, reverse=True)) + ")"
JOB = (
    r"(?:(?!(?:a|an|the|my|our|your|his|her|their|not|very|really|good|bad|big|terrible|great|better|"
    r"decent|huge|worst|best|lousy|horrible|awful|quite|just|also|still|such|no|at|in|for|with|and|or|"
    rf"of|to|from|on)\b)(?!\d)[\w/&+-]+ ){{0,4}}?(?i:{JOB_HEAD}|\w{{3,}}(?:ologist|iatrist|grapher|"
    r"ician|smith|chitect|onomist)|head|chair|dean|vp|director|chief [\w-]+ officer)(?![\w-])"
    r"(?: of (?!mine\b|a\b|the\b|ours\b|course\b)[\w&-]+(?: (?!at\b|in\b|for\b|and\b|since\b|from\b|"
    r"with\b|now\b|on\b)[\w&-]+)?)?"
)

DEPARTMENTS = word_set(
    "Sales Marketing Engineering Product Operations Finance Design Research Support Growth People HR "
    "IT Data Security Legal Communications Education"
)
"""What somebody may be head of without it being a company."""

DIET = (
    r"(?:vegan|vegetarian|pescatarian|pescetarian|flexitarian|gluten[- ]free|dairy[- ]free|lactose[- "
    r"]intolerant|coeliac|celiac|keto|kosher|halal|plant-based)"
)
_LANGUAGES = (
    "English German French Spanish Italian Portuguese Dutch Polish Russian Ukrainian Czech Slovak "
    "Hungarian Romanian Bulgarian Greek Turkish Arabic "
    "Hebrew Persian Farsi Hindi Urdu Bengali Punjabi Tamil Telugu Kannada Malayalam Marathi Gujarati "
    "Mandarin Chinese Cantonese Japanese Korean Vietnamese Thai "
    "Indonesian Malay Tagalog Swahili Amharic Yoruba Igbo Zulu Afrikaans Swedish Norwegian Danish "
    "Finnish Icelandic Estonian Latvian Lithuanian Serbian "
    "Croatian Slovenian Albanian Catalan Basque Galician Welsh Irish Gaelic Latin Esperanto Nepali "
    "Georgian Armenian Khmer Lao Burmese Mongolian Kazakh Tibetan Quechua Maltese"
)
LANGUAGE = "(?:" + "|".join(_LANGUAGES.split()) + ")"
_DEMONYMS = (
    "American British Canadian Mexican Brazilian Indian Pakistani Australian Austrian Swiss Belgian "
    "Scottish Egyptian Nigerian Kenyan Iranian Iraqi Israeli "
    "Palestinian Syrian Lebanese Moroccan Argentinian Chilean Colombian Peruvian Cuban Filipino "
    "African European Asian Catholic Christian Jewish Muslim "
    "Buddhist Hindu Protestant Californian Texan Bavarian Sicilian Taiwanese Singaporean Argentine "
    "Venezuelan Ghanaian Ethiopian South North"
)
_OTHERS = (
    "I I'm I’m I've I’ve I'll I’ll I'd I’d The This That It He She We They You There What When Where "
    "Which Who Why How Please If And But So Then Also My Our His Her Their "
    "Its Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May "
    "June July August September October November December "
    "Yes No Ok Okay Everyone Nobody Someone Nothing Everything Everybody Somebody Let Not Sorry "
    "Thanks Thank Hi Hello Hey Dear Well Now Today Tomorrow Yesterday "
    "Here Just Actually Maybe Perhaps Anyway Still Only Even Both All Some Any Many Most Few Each "
    "Every Another Other Such Same A An One Two Three Four Five In On At "
    "By For From With Without About After Before Since Until While Because Although Though However "
    "Meanwhile Otherwise Instead Christmas Easter Halloween "
    "Python Postgres Linux Windows Excel Word Java JavaScript TypeScript React Docker Kubernetes Siri Alexa ChatGPT "
    "Gmail AI API URL PDF CEO CTO OK PS FYI BTW LOL ASAP God Internet Do Does Did Is Are Was Were Can Could Will Would Should "
    "Have Has Had Got Get Going Great Good Cool Sure Right Wow Oh Ah Um Hmm Mr Mrs Ms Dr Update Note Reminder Correction "
    "Yeah Yep Yup Nope Nah Aw Aww Awesome Amazing Absolutely Definitely Totally Exactly True Agreed "
    "Fair Perfect Lovely Congrats Congratulations Cheers Bye Honestly Unfortunately "
    "Sadly Luckily Fortunately Apparently Basically Personally Obviously Clearly Hopefully "
    "Especially Speaking Plus Like Look Listen See Guess Guys Folks Hmm Haha Lol Omg Man "
    "Coffee Tea Sleep Music Wine Chocolate Yoga Caffeine Time Money Food Reading Writing Running "
    "Cooking Exercise Nature Art Math Science History English "
    "Never Always Usually Often Sometimes Once Next Last First Second Finally Recently Currently "
    "Later Soon Again Too Very Really Quite Almost"
)
_BRANDS = (
    "Life Work Home School People Things Kids Google Amazon Slack GitHub Netflix YouTube Spotify "
    "Claude Zoom Teams Notion Figma Jira Wikipedia Reddit Facebook Twitter Instagram Apple Microsoft "
    "Uber Tesla WhatsApp TikTok LinkedIn"
)
NOT_NAMES = frozenset((_OTHERS + " Nice " + _BRANDS + " " + _DEMONYMS + " " + _LANGUAGES).split())
"""Words that may stand with a capital without being anybody's name."""
_MONTHS = "January February March April May June July August September October November December"
NOT_PLACES = frozenset((_OTHERS + " " + _LANGUAGES + " " + _MONTHS + " HR IT Q1 Q2 Q3 Q4 PM AM").split())

_TITLE = re.compile(r"^(?:Mr|Mrs|Ms|Mx|Dr|Prof|Herr|Frau)\.? ")


def person_name(words: str) -> str | None:
    """The name without title, possessive or words that follow names at the start of a sentence; None if it is no name."""
    name = _TITLE.sub("", words.strip()).strip(" ,.'’")
    parts = name.split()
    while parts and parts[-1] in NOT_NAMES:
        parts.pop()
    if not parts or any(part in NOT_NAMES for part in parts) or len(parts[0]) < 2 or (name.isupper() and len(name) > 5):
        return None
    return " ".join(parts)


def proper(words: str) -> str | None:
    """A place or an organisation as said; None if the words are something else with a capital."""
    name = words.strip(" ,")
    parts = name.split()
    while parts and parts[-1].strip(",") in NOT_PLACES:
        parts.pop()
    if not parts or parts[0].strip(",") in NOT_PLACES:
        return None
    return " ".join(parts).rstrip(",")


def third_person(verb: str) -> str:
    """`go` as it stands after `she`: `goes`."""
    known = {"have": "has", "be": "is", "am": "is", "are": "is", "do": "does", "go": "goes"}
    if verb in known:
        return known[verb]
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2:-1] not in "aeiou" else verb + "s"
