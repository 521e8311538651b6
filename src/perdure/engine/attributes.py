"""What is told of a subject: the attributes that have a name, how each is worded, and which hold one value at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perdure.domain.knowledge import EntityType, FactType

Shape = Literal["place", "org", "job", "age", "phrase", "diet", "languages", "date", "name", "project"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """What is told of a subject, and how it is worded."""

    name: str
    own: str
    """Wording of a statement about the user."""
    shape: Shape
    fact_type: FactType = "fact"
    entity: EntityType | None = None
    importance: int = 1
    other: str = ""
    """Wording behind a name, if it is not that of `own` in lower case."""

    def content(self, value: str, who: str | None) -> str:
        """`Lives in Rome`, or `Anna lives in Rome`."""
        if who is None:
            return self.own.format(value)
        words = self.other or self.own[0].lower() + self.own[1:]
        return f"{who} {words.format(value)}"


_ATTRIBUTES = (
    Attribute("name", "Name is {}", "name", importance=3, other="is called {}"),
    Attribute("lives_in", "Lives in {}", "place", entity="place", importance=2),
    Attribute("from", "Is from {}", "place", entity="place"),
    Attribute("works_at", "Works at {}", "org", entity="org", importance=2),
    Attribute("job_title", "Works as {}", "job", importance=3, other="is {}"),
    Attribute("studies_at", "Studies at {}", "org", entity="org", importance=2),
    Attribute("member_of", "Is a member of {}", "org", entity="org"),
    Attribute("age", "Is {} years old", "age"),
    Attribute("birthday", "Birthday is {}", "date", importance=2, other="has birthday on {}"),
    Attribute("birth_year", "Was born in {}", "date"),
    Attribute("diet", "Is {}", "diet", "preference", importance=2),
    Attribute("allergy", "Is allergic to {}", "phrase", importance=2),
    Attribute("speaks", "Speaks {}", "languages"),
    Attribute("learning", "Is learning {}", "phrase"),
    Attribute("timezone", "Time zone is {}", "phrase"),
    Attribute("email", "Email is {}", "phrase", importance=2, other="has email {}"),
    Attribute("phone", "Phone number is {}", "phrase", importance=2, other="has phone number {}"),
    Attribute("likes", "Likes {}", "phrase", "preference"),
    Attribute("dislikes", "Dislikes {}", "phrase", "preference"),
    Attribute("prefers", "Prefers {}", "phrase", "preference"),
    Attribute("trait", "Is {}", "phrase"),
    Attribute("handles", "Handles {}", "phrase"),
    Attribute("drives", "Drives {}", "phrase"),
    Attribute("children", "Has {}", "phrase", importance=2),
    Attribute("marital_status", "Is {}", "phrase", importance=2),
    Attribute("has_pet", "Has {}", "phrase"),
    Attribute("employment", "Is {}", "phrase", importance=2),
    Attribute("avoids", "Avoids {}", "phrase", "preference", importance=2),
    Attribute("plays", "Plays the {}", "phrase"),
    Attribute("deceased", "Died", "phrase", importance=2, other="has died"),
)
ATTRIBUTES = {attribute.name: attribute for attribute in _ATTRIBUTES}
PERSONAL = frozenset(
    (
        "lives_in",
        "from",
        "works_at",
        "job_title",
        "studies_at",
        "age",
        "birthday",
        "diet",
        "allergy",
        "speaks",
        "likes",
        "dislikes",
        "prefers",
        "handles",
        "marital_status",
        "deceased",
        "employment",
        "avoids",
        "plays",
        "member_of",
        "learning",
        "birth_year",
    )
)
"""Attributes that are kept of other people too."""

SINGLE_VALUED: frozenset[str] = frozenset(
    {
        "name",
        "lives_in",
        "from",
        "works_at",
        "job_title",
        "studies_at",
        "age",
        "birthday",
        "birth_year",
        "partner",
        "manager",
        "email",
        "phone",
        "timezone",
        "diet",
        "children",
        "marital_status",
        "employment",
        "deceased",
        "status",
        "deadline",
        "pronouns",
        "employer",
        "favorite_color",
        "favorite_food",
        "favorite_movie",
        "favorite_film",
        "favorite_book",
        "favorite_song",
        "favorite_band",
        "favorite_drink",
        "favorite_season",
        "favorite_sport",
        "favorite_team",
        "favorite_animal",
        "favorite_city",
        "favorite_restaurant",
        "favorite_author",
        "favorite_artist",
        "favorite_game",
        "favorite_show",
        "favorite_genre",
        "favorite_language",
        "favorite_editor",
        "favorite_number",
    }
)
"""Attributes of which a subject has one value at a time: a new one closes the old."""


def is_single_valued(attribute: str | None) -> bool:
    """Whether a new value of the attribute takes the place of the old one."""
    return attribute is not None and (attribute in SINGLE_VALUED or attribute.startswith("favorite_"))
