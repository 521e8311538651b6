"""What a caller wants to know before a goal, and what of it is refused."""

from __future__ import annotations

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.limits import NUMBER_MAX
from perdure.domain.oversight import TARGETS, Target
from perdure.domain.text.rules import brief, check_choice, utf8_size
from perdure.domain.values import dataclass

BUDGET_TOKENS, BUDGET_TOKENS_MIN = 2_000, 100
GOAL_BYTES_MAX = 100_000


@dataclass(frozen=True, slots=True)
class BeforeRequest:
    """What a caller wants to know before a goal."""

    goal: str
    budget_tokens: int = BUDGET_TOKENS
    target: Target = "first_step"
    deadline_s: float = 2.0


def check_request(asked: BeforeRequest) -> None:
    """`InvalidInput` or `LimitExceeded` unless it can be answered."""
    if utf8_size(asked.goal, "`goal`") > GOAL_BYTES_MAX:
        raise LimitExceeded(f"`goal` has more than {GOAL_BYTES_MAX} bytes; say it in fewer words")
    if not asked.goal.strip():
        raise InvalidInput("`goal` is empty; say what to do")
    check_choice(asked.target, "target", TARGETS)
    budget = asked.budget_tokens
    if not isinstance(budget, int) or isinstance(budget, bool) or not BUDGET_TOKENS_MIN <= budget <= NUMBER_MAX:
        raise InvalidInput(f"`budget_tokens` = {brief(budget)} must be a whole number of at least {BUDGET_TOKENS_MIN}")
    check_deadline(asked.deadline_s)


def check_deadline(seconds: object) -> None:
    """`InvalidInput` unless one can wait so long."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 3600:
        raise InvalidInput(f"`deadline_s` = {brief(seconds)} must be a number of seconds above 0, at most 3600")
