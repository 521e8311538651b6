"""What the steps of the day share: its clock, its engine, its folder, and the places where Ana talks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import perdure
from perdure.domain.values import dataclass, replace
from perdure.testing import StoppedClock

Facts = dict[str, object]
"""What a step has to show: counters and short texts, by name."""

ZONE = ZoneInfo("Europe/Lisbon")
MONDAY = datetime(2026, 6, 15, tzinfo=ZONE)
METRIC, ASK = "Give distances in kilometres", "Ask before you book a room"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens: when, in which part of the engine, in a sentence, and the calls that make it happen."""

    at: str
    """The time on Ana's wall, as in `06:00`."""
    about: str
    """`log`, `series`, `overseer`, `context`, `knowledge`, `lessons` or `store`."""
    title: str
    do: Callable[[World], Facts]


class World:
    """Ana's Monday. Whatever is written lies in `folder`, or in the store that the settings name."""

    def __init__(self, folder: Path, settings: perdure.Settings) -> None:
        self.folder = folder
        self.clock = StoppedClock(MONDAY)
        self.settings = replace(
            settings,
            user="ana",
            zone=ZONE.key,
            agents_dir=str(folder / "agents"),
            files_dir=str(folder / "files"),
        )
        self.engine = self._opened()
        self.asked: list[perdure.Window] = []
        """What the API with the kudos was asked for."""
        self._places: dict[tuple[str, str], None] = {}

    def ana(self, agent: str = "coach", channel: str = "app") -> perdure.Memory:
        """Ana, talking with an agent on a channel."""
        self._places[agent, channel] = None
        return self.engine.memory("ana", agent=agent, channel=channel)

    @property
    def places(self) -> list[perdure.Memory]:
        """Everywhere she has talked so far."""
        return [self.ana(*place) for place in list(self._places)]

    def at(self, hour: int, minute: int = 0, *, days_ago: int = 0) -> datetime:
        """A moment by the clock on her wall."""
        return MONDAY.replace(hour=hour, minute=minute) - timedelta(days=days_ago)

    def wait(self, **by: float) -> None:
        """Let time pass, and have the jobs run that are due then."""
        self.clock.move(**by)
        self.engine.process()

    def exchange(self, memory: perdure.Memory, turns: Mapping[str, str]) -> None:
        """Things Ana says, each with the agent's answer, half a minute apart; then the jobs run."""
        for said, answered in turns.items():
            asked = perdure.NewMessage("user", said, at=self.clock.now())
            memory.append_many([asked, perdure.NewMessage("assistant", answered, at=self.clock.move(seconds=30))])
            self.clock.move(seconds=30)
        self.engine.process()

    def restart(self) -> None:
        """Close the engine and open the store again, as after the end of a process."""
        self.engine.close()
        self.engine = self._opened()

    def close(self) -> None:
        self.engine.close()

    def _opened(self) -> perdure.Engine:
        return perdure.open(settings=self.settings, clock=self.clock)
