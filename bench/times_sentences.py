"""Sentences that name no time, most of them with words that look like one: `May I`, `last name`, version 3.11, 24/7.

Written for this purpose: patterns with places for words, every combination a sentence. None is taken from any corpus.
"""

from __future__ import annotations

from itertools import product

COUNT = 1_000

PEOPLE = ("Ana", "my brother", "the new intern", "April Ludgate", "June Carter", "Will Smith", "August Wilson", "Mr. Friday")
THINGS = ("the blue folder", "a spring mattress", "the pasta recipe", "my second monitor", "the last slice", "a minute detail")
PLACES = (
    "Lisbon",
    "the third floor",
    "March Street",
    "Summer Lane 12",
    "gate 24",
    "room 2019",
    "Sunday River",
    "the fall line",
)
DISHES = (
    "pasta",
    "a blast of chili",
    "toast",
    "the roast",
    "paella",
    "a Sunday-style roast",
    "dates and nuts",
    "a strawberry sundae",
)
CODES = (
    "v3.11",
    "version 2.4.1",
    "RFC 2822",
    "ISO 9001",
    "build 20-4-b",
    "ticket PRJ-2025",
    "id 7f3a-1105-bb",
    "port 8080",
    "SKU 10-2-XL",
)
PRICES = ("$19.99", "€ 5", "1,200 dollars", "3 for 2", "50 percent", "twelve euros", "2.5 million")
PHONES = ("555-0134", "+49 30 901820", "(212) 555-7788", "0800 100 200")
RATIOS = ("3:2", "16:9", "4 to 1", "1/2 cup", "2/3", "a quarter pound", "half a dozen", "two thirds", "7 of 9")

PATTERNS: tuple[tuple[str, ...], ...] = (
    ("May I borrow {0}?", "THINGS"),
    ("May I introduce you to {0}?", "PEOPLE"),
    ("{0} may come along if there is room.", "PEOPLE"),
    ("Order {0} for the blast party.", "DISHES"),
    ("Can you cook {0} without salt?", "DISHES"),
    ("My last name is spelled like the one of {0}.", "PEOPLE"),
    ("What is the last name of {0}?", "PEOPLE"),
    ("{0} needs a second opinion on {1}.", "PEOPLE", "THINGS"),
    ("On second thought, leave {0} at home.", "THINGS"),
    ("We march on to {0}.", "PLACES"),
    ("The path to {0} starts behind the church.", "PLACES"),
    ("Where is {0}?", "PLACES"),
    ("{0} lives near {1}.", "PEOPLE", "PLACES"),
    ("Did {0} ever visit {1}?", "PEOPLE", "PLACES"),
    ("Upgrade to {0} and run the tests again.", "CODES"),
    ("The bug is fixed in {0}.", "CODES"),
    ("{0} asked about {1}.", "PEOPLE", "CODES"),
    ("Does {0} support dark mode?", "CODES"),
    ("It costs {0} per head.", "PRICES"),
    ("{0} paid {1} for {2}.", "PEOPLE", "PRICES", "THINGS"),
    ("Call me at {0} if you get lost.", "PHONES"),
    ("The number of {0} is {1}.", "PEOPLE", "PHONES"),
    ("Mix water and rice at {0}.", "RATIOS"),
    ("Use {0} of butter for {1}.", "RATIOS", "DISHES"),
    ("The screen has a ratio of {0}.", "RATIOS"),
    ("{0} won {1} in the final.", "PEOPLE", "RATIOS"),
    ("Which colour does {0} like best?", "PEOPLE"),
    ("Please don't fall down in {0}.", "PLACES"),
    ("{0} fell for the trick with {1}.", "PEOPLE", "THINGS"),
    ("I put {0} next to the sofa.", "THINGS"),
    ("{0} is last in line, next to {1}.", "PEOPLE", "PEOPLE"),
    ("What does {0} think about {1}?", "PEOPLE", "THINGS"),
    ("Remember that {0} is allergic to nuts.", "PEOPLE"),
    ("Tell {0} that {1} is ready.", "PEOPLE", "DISHES"),
)
SINGLE = (
    "The shop is open 24/7.",
    "Sunday School Musical is a film.",
    "Have you read Nineteen Eighty-Four by Orwell?",
    "Friday is the name of Crusoe's companion.",
    "My favourite band is The Weeknd.",
    "Maroon 5 and Blink-182 are bands.",
    "She was born to lead.",
    "The second one from the left is mine.",
    "First come, first served.",
    "He finished third in his class.",
    "Give me a minute to think.",
    "Wait a second, that is wrong.",
    "It takes an hour by train.",
    "The film lasts two hours.",
    "Boil the eggs for 7 minutes.",
    "I slept for eight hours.",
    "A two-day hike with a three-year-old is hard.",
    "He is 42 years old.",
    "The warranty covers two years.",
    "A week has seven days.",
    "There are 24 hours in a day.",
    "We need 3 more chairs.",
    "Past performance is no guarantee.",
    "The past is a foreign country.",
    "He ran past the post office.",
    "What's next on the list?",
    "The next item is the budget.",
    "At last we are alone.",
    "Last but not least, thank you.",
    "It was the last straw.",
    "This is my last resort.",
    "Daylight saving is a strange idea.",
    "I have a day job and a night lamp.",
    "Night owls and early birds rarely agree.",
    "The morning person of the two is me.",
    "Good morning!",
    "Good evening, everyone.",
    "Have a nice day!",
    "Day by day it gets easier.",
    "The spring in the sofa is broken.",
    "Water from the spring is cold.",
    "Fall in love, they said.",
    "The fall of Rome fascinates me.",
    "Autumn is my sister's name.",
    "The march was peaceful.",
    "March forward, don't look back.",
    "An august body of scholars met.",
    "Jan and Mark share a flat.",
    "Dec and Ant host the show.",
    "The sun is bright.",
    "We sat on the wall.",
    "They wed in secret.",
    "Mon ami, your French is fine.",
    "Tue Gutes und rede darüber.",
    "Mar is Spanish for sea.",
    "He took a dive from 10 metres.",
    "The 2nd floor has a balcony.",
    "My flat is on the 15th floor.",
    "The 5th element was water.",
    "Article 5 of the treaty.",
    "Chapter 12 explains it.",
    "See page 7.",
    "Turn to page 24.",
    "Route 66 is long.",
    "Take the A1 to exit 23.",
    "Boeing 747 or Airbus 380?",
    "The CPU has 16 cores and 2048 MB.",
    "Resize it to 1920 x 1080.",
    "The PIN is not 1234.",
    "Area 51 is in the desert.",
    "Catch 22 is a novel.",
    "He weighs 80 kilos.",
    "It is 20 degrees outside.",
    "The odds are 10 to 1.",
    "The score was 3-2.",
    "The vote was 52 to 48.",
    "We won by 12 points.",
    "I got 9 out of 10.",
    "Add 2 to 4 eggs.",
    "Use between 3 and 5 cloves of garlic.",
    "Pick a number from 1 to 10.",
    "Tables 4 and 5 are taken.",
    "Python 3.11 is faster.",
    "Upgrade from 3.11 to 3.12.",
    "Send it to 10.0.0.1.",
    "The hash is 2b-10-44.",
    "Error 404: not found.",
    "HTTP 200 means fine.",
    "The ISBN is 978-3-16-148410-0.",
    "My zip code is 10115.",
    "Invoice 2025-17 is unpaid.",
    "He lives at 12 May Street.",
    "The house is at 221 Baker Street.",
    "Zwei Kaffee, bitte.",
    "Ich bin hier und warte.",
    "Hier ist der Schlüssel.",
    "Das ist mein letztes Wort.",
    "Guten Morgen!",
    "Wie heißt du?",
    "Der Mann im Mond.",
    "Wir treffen uns im Café Sommer.",
    "Comment vas-tu ?",
    "C'est la dernière pièce du puzzle.",
    "Il a été très gentil.",
    "Elle a deux chats et un chien.",
    "Bonjour à tous !",
    "Je voudrais une tarte aux pommes.",
    "¿Cómo te llamas?",
    "Es la última vez que lo digo.",
    "Buenos días a todos.",
    "El mar está tranquilo.",
    "Me gusta la primavera de Vivaldi.",
    "Tengo dos hermanos y una hermana.",
)


def sentences() -> list[str]:
    """`COUNT` different ones, always the same: the single ones, then combinations drawn evenly from each pattern."""
    made = [_made(*pattern) for pattern in PATTERNS]
    found = dict.fromkeys(SINGLE)
    for place in range(max(map(len, made))):
        found.update(dict.fromkeys(line[_scattered(place, len(line))] for line in made if place < len(line)))
    return list(found)[:COUNT]


def _made(pattern: str, *slots: str) -> list[str]:
    words = product(*(globals()[slot] for slot in slots))
    lines = [pattern.format(*chosen) for chosen in words if len(set(chosen)) == len(chosen)]
    return [line[0].upper() + line[1:] for line in lines]


def _scattered(place: int, size: int) -> int:
    """Every place of `size` once, far from the one before."""
    step = next(step for step in (37, 41, 43, 47, 53) if size % step)
    return place * step % size
