"""After a tool: decides what of its result is kept. A model may advise; what is stored is decided and written here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound, PerdureError, Unavailable
from perdure.domain.models import ChatMessage, Consultation
from perdure.domain.oversight import SAVE_MODES, AskedTool, Covers, Decision, KeptResult, SaveMode, SeriesOffer
from perdure.domain.scope import ID_BYTES_MAX, Scope
from perdure.domain.series import FetchRecord
from perdure.domain.text.rules import Json, brief, check_choice, check_id, same_json, utf8_size
from perdure.domain.text.secrets import without_secrets_in
from perdure.domain.times.instants import instant_us, to_us, zone_named
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass, replace
from perdure.engine.models.prompts import as_data, filled
from perdure.engine.oversight.results import (
    ENTRIES_MIN,
    KeepVerdict,
    as_series,
    clean_key,
    entries_in,
    key_of,
    may_have_failed,
    plain,
    preview_of,
    refused_tool,
    secret_in,
    verdict,
)
from perdure.engine.oversight.tool_windows import arguments_of, carried_window, declared_window, ended_by, filters_of, in_order
from perdure.engine.times.edges import span_of
from perdure.engine.times.question import Weekday, extract_time_range
from perdure.ports.clock import Clock
from perdure.ports.store import Store
from perdure.ports.tables.oversight import DECISIONS_KEPT
from perdure.services.models.consultant import Consultant, Question
from perdure.services.models.prompted import prompt_named
from perdure.services.oversight.request import GOAL_BYTES_MAX, check_deadline
from perdure.services.series.series import SeriesService
from perdure.services.series.state import StateService

GOAL_KEPT_CHARS, REASON_CHARS_MAX = 200, 300
TOOL_BYTES_MAX = 200
STORAGE_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"save": {"type": "boolean"}, "key": {"type": "string"}, "reason": {"type": "string"}},
    "required": ["save", "key", "reason"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class AfterRequest:
    """What a tool gave, and how it is to be treated."""

    tool: str
    value: object
    goal: str = ""
    mode: SaveMode | None = None
    """None: as the setting `save_results` says."""
    allow: Sequence[str] | None = None
    deny: Sequence[str] = ()
    window: Span | None = None
    """The time that was asked of the tool, if it was asked for one and has answered completely."""
    asked: AskedTool | Mapping[str, Json] | None = None
    """How the tool was called, or its arguments; None: that is not known."""
    deadline_s: float = 5.0


@dataclass(frozen=True, slots=True)
class _Proof:
    """What a result proves of the time it is about, and why."""

    covers: Covers
    window: Span | None
    why: str


@dataclass(frozen=True, slots=True)
class ResultKeeper:
    store: Store
    clock: Clock
    state: StateService
    series: SeriesService
    consultant: Consultant | None
    """None: the rules decide alone."""
    mode: SaveMode
    zone: str
    week_start: Weekday

    def after(self, scope: Scope, result: AfterRequest) -> KeptResult:
        """What becomes of a tool's result; the decision is recorded whatever it is."""
        _check(result)
        began = self.clock.monotonic()
        mode = self.mode if result.mode is None else result.mode
        try:
            value = plain(result.value)
        except InvalidInput as error:
            # An agent's tool may return anything; that it is no data is no reason to stop the agent.
            decided = KeptResult("", result.tool, mode, "none", str(error)[:REASON_CHARS_MAX])
        except Exception as error:  # noqa: BLE001 - the plugin edge: what a tool returns may be anybody's code
            decided = KeptResult(
                "", result.tool, mode, "none", f"the result cannot be read ({type(error).__name__}); return plain data"
            )
        else:
            decided = self._decided(scope, result, mode, value)
        took_ms = round((self.clock.monotonic() - began) * 1000, 3)
        kept = replace(decided, id=self.clock.new_id(), took_ms=took_ms)
        try:
            self._record(scope, result.goal, kept)
        except (Unavailable, LimitExceeded) as error:
            return replace(kept, reason=f"{kept.reason}; the decision could not be recorded: {error}"[:REASON_CHARS_MAX])
        return kept

    def window(self, ends: object) -> Span:
        """The range that a caller says was answered completely, as times or as words."""
        return span_of(ends, to_us(self.clock.now()), zone_named(self.zone))

    def accept(self, scope: Scope, suggested: KeptResult, value: object) -> KeptResult:
        """Save what was suggested. `value` is the result that the suggestion was made of."""
        if not isinstance(suggested, KeptResult):
            raise InvalidInput(f"`suggested` is a `{type(suggested).__name__}`; pass what `after` answered")
        if suggested.action != "suggested" or suggested.key is None:
            raise InvalidInput(
                f"nothing was suggested here: the decision was `{suggested.action}`; call `after` in mode suggest"
            )
        shaped = plain(value)
        if preview_of(shaped) != suggested.preview:
            raise InvalidInput("`result` is not the one that the suggestion was made of; pass the same value")
        secret = secret_in(shaped)
        if secret is not None:
            raise InvalidInput(f"{secret}; keep secrets elsewhere")
        saved = self._stored(scope, replace(suggested, mode="auto"), shaped)
        saved = replace(saved, id=self.clock.new_id(), reason=f"accepted: {suggested.reason}"[:REASON_CHARS_MAX])
        self._record(scope, "", saved)
        return saved

    def _decided(self, scope: Scope, result: AfterRequest, mode: SaveMode, value: Json) -> KeptResult:
        nothing = KeptResult("", result.tool, mode, "none", "", preview=preview_of(value), window=result.window)
        refused = refused_tool(result.tool, result.allow, result.deny)
        if refused is not None:
            return replace(nothing, reason=refused)
        secret = secret_in(value)
        if secret is not None:
            # Not even its beginning is kept in the record.
            return replace(nothing, action="refused", reason=f"{secret}; keep secrets elsewhere", preview="")
        if mode == "manual":
            return replace(nothing, reason="mode manual: results are saved by hand only")
        found, nothing = self._verdict(scope, result, value, nothing)
        proof = self._proof(result, value)
        offer = None if found.final else self._offer(scope, result, value, found, proof)
        if offer is not None:
            if proof.covers != "window":
                proof = self._of_entries(result, offer, value, proof.why)
            wanted = replace(
                nothing, action="suggested", key=offer.name, series=offer, window=proof.window, covers=proof.covers
            )
            wanted = replace(wanted, reason=f"{_series_words(offer)}; {proof.why}")
            # What only looks like a series is offered; merged is what somebody or the goal wants to keep, what goes on with a
            # series that the tool's results are kept in (S0-57), and that nothing came.
            wants = found.save or offer.entries == 0 or self._is_own(scope, result, offer)
            if wants and mode == "auto" and self._may_join(scope, result, offer):
                return self._stored(scope, wanted, value)
            return wanted
        if not found.save:
            return replace(nothing, reason=found.reason)
        wanted = replace(nothing, action="suggested", reason=found.reason, key=found.key)
        if mode == "suggest":
            return wanted
        if not self._may_replace(scope, result, found.key):
            why = f"`{found.key}` holds something else already, which no model may replace; accept it, or name it in the goal"
            return replace(wanted, reason=f"{why}; {found.reason}"[:REASON_CHARS_MAX])
        return self._stored(scope, wanted, value)

    def _proof(self, result: AfterRequest, value: Json) -> _Proof:
        """Whether a window was asked for, and all of it came: on the word of the caller, of the host, or of the arguments."""
        asked = self._request(result)
        rows = len(entries_in(value, least=0) or ())
        ended = ended_by(value, rows, asked)
        zone = zone_named(self.zone)
        window = result.window
        if window is None:
            window = declared_window(
                asked, result.goal, zone, lambda text: extract_time_range(text, asked.at, self.zone, week_start=self.week_start)
            )
        if window is None:
            window = carried_window(asked, zone)
        if window is None:
            return _Proof("nothing", None, "the requested time is unknown")
        if may_have_failed(value):
            return _Proof("nothing", None, "the tool seems to have failed")
        # Who hands over a window says that all of it came; only the result itself can say otherwise.
        if ended == "whole" or (ended == "unknown" and result.window is not None):
            return _Proof("window", window, "the time that was asked for counts as covered")
        return _Proof("nothing", None, "the answer was cut off" if ended == "cut" else f"{rows} entries may be just one page")

    def _of_entries(self, result: AfterRequest, offer: SeriesOffer, value: Json, why: str) -> _Proof:
        """What is left to count as covered: the time between the entries, if nothing suggests that some are missing there."""
        filters = filters_of(self._request(result))
        failed = may_have_failed(value)
        if filters:
            why = f"it was asked with `{filters[0]:.60}`, which may leave entries out"
        try:
            rows = entries_in(value, least=0) or []
            instants = [instant_us(row.get(offer.time_field), zone_named(self.zone), offer.time_field) for row in rows]
        except InvalidInput:
            instants = []
        if failed or filters or len(set(instants)) < 2 or not in_order(instants):
            return _Proof("nothing", None, f"{why}: no time counts as covered")
        return _Proof("entries", None, f"{why}: only the time between the entries counts as covered")

    def _request(self, result: AfterRequest) -> AskedTool:
        if isinstance(result.asked, AskedTool):
            return result.asked
        return arguments_of({} if result.asked is None else result.asked, self.clock.now())

    def _offer(self, scope: Scope, result: AfterRequest, value: Json, found: KeepVerdict, proof: _Proof) -> SeriesOffer | None:
        """How the result belongs into a series: by its looks, or because there is one of that name already."""
        # A tool that is declared to answer for a time gives a series: one entry is enough.
        looks = as_series(result.tool, value, least=1 if proof.covers == "window" else ENTRIES_MIN)
        name = found.key if looks is None else found.key or looks.name
        held = self.series.find(scope.owner, name)
        rows = entries_in(value, least=0)
        if held is None or rows is None or any(held.spec.timestamp_field not in row for row in rows):
            return None if looks is None else replace(looks, name=name)
        if looks is None and not rows and proof.window is None:
            return None
        # A quiet day has one entry or none, and was asked for all the same.
        spec = held.spec
        window = proof.window or Span(to_us(held.accumulated_since), to_us(held.accumulated_since) + 1)
        return SeriesOffer(
            name=held.name,
            id_field=spec.id_field,
            time_field=spec.timestamp_field,
            entries=len(rows),
            window=window if looks is None else looks.window,
            id_template=spec.id_template,
        )

    def _is_own(self, scope: Scope, result: AfterRequest, offer: SeriesOffer) -> bool:
        return offer.name == key_of(result.tool) and self.series.find(scope.owner, offer.name) is not None

    def _may_join(self, scope: Scope, result: AfterRequest, offer: SeriesOffer) -> bool:
        """Whether entries may go into a series unasked: into a new one, the tool's own, or one that the goal names.

        A model that names another one is not followed: what it points at may be anybody's.
        """
        if self.series.find(scope.owner, offer.name) is None or offer.name == key_of(result.tool):
            return True
        by_goal = verdict(result.tool, [result.goal], result.goal)
        return by_goal.save and by_goal.key == offer.name

    def _may_replace(self, scope: Scope, result: AfterRequest, key: str) -> bool:
        """Whether a result may be saved under a key unasked: a new one, the tool's own, one that the goal names, or one that
        results of this tool are kept under. As with series, a model that names another one is not followed."""
        if key == key_of(result.tool) or not self.state.find(scope.owner, key).found:
            return True
        by_goal = verdict(result.tool, [result.goal], result.goal)
        if by_goal.save and by_goal.key == key:
            return True
        made = self.store.read(scope.owner, lambda view: view.oversight.list_decisions(limit=DECISIONS_KEPT, kind="after"))
        return any(
            one.body.get("action") in ("saved", "unchanged")
            and (one.body.get("tool"), one.body.get("key")) == (result.tool, key)
            for one in made
        )

    def _verdict(self, scope: Scope, result: AfterRequest, value: Json, nothing: KeptResult) -> tuple[KeepVerdict, KeptResult]:
        """The model's verdict if there is one that can be used, else that of the rules."""
        by_rules = verdict(result.tool, value, result.goal)
        if by_rules.final or self.consultant is None:
            return by_rules, nothing

        def read(answer: Json) -> KeepVerdict:
            given = cast("dict[str, Json]", answer)
            key = clean_key(str(given["key"])) or key_of(result.tool)
            return KeepVerdict(bool(given["save"]), key, " ".join(str(given["reason"]).split())[:REASON_CHARS_MAX])

        data = as_data({"goal": result.goal[:2_000], "tool": result.tool, "result": preview_of(value)})
        prompt = filled(prompt_named("storage"), {"data": data})
        question = Question("storage", (ChatMessage("user", prompt),), STORAGE_SCHEMA, read)
        got: Consultation[KeepVerdict] = self.consultant.ask(scope.owner, question, deadline_s=result.deadline_s)
        noted = replace(nothing, model_calls=got.calls, outcome=got.outcome)
        return (by_rules if got.value is None else got.value), noted

    def _stored(self, scope: Scope, wanted: KeptResult, value: Json) -> KeptResult:
        """`wanted`, carried out. What cannot be stored is told, not raised: the agent's work goes on."""
        try:
            return (self._saved if wanted.series is None else self._merged)(scope, wanted, value)
        except PerdureError as error:
            return replace(wanted, action="none", reason=f"not kept: {error}"[:REASON_CHARS_MAX])

    def _merged(self, scope: Scope, wanted: KeptResult, value: Json) -> KeptResult:
        offer = wanted.series
        rows = entries_in(value, least=0)
        if offer is None or rows is None:
            raise InvalidInput("the result is not the one that the suggestion was made of; pass the same value")
        rules: dict[str, Json] = {"timestamp_field": offer.time_field}
        rules |= {"id_template": offer.id_template} if offer.id_template else {"id_field": offer.id_field}
        fetch = FetchRecord(wanted.window, complete=True, infer="batch_span" if wanted.covers == "entries" else "none")
        done = self.series.merge(scope.owner, offer.name, rows, fetch=fetch, stated=rules)
        reason = (
            f"{wanted.reason}; {done.added} added, {done.duplicates} known, {done.updated} of these with another body, "
            f"whose earlier one is in the history, {len(done.rejected)} rejected"
        )
        return replace(wanted, action="merged", reason=reason[:REASON_CHARS_MAX])

    def _saved(self, scope: Scope, wanted: KeptResult, value: Json) -> KeptResult:
        key = check_id(wanted.key or key_of(wanted.tool), "key", bytes_max=ID_BYTES_MAX)
        held = self.state.find(scope.owner, key)
        if held.found and same_json(held.value, value):
            return replace(wanted, action="unchanged", revision=held.revision, reason=f"`{key}` holds the same already")
        try:
            saved = self.state.save(scope.owner, key, value, expected=held.revision)
        except (Conflict, NotFound):
            # Somebody wrote meanwhile: theirs stays as the revision before.
            saved = self.state.save(scope.owner, key, value)
        kept = f"; the value before is revision {saved.number - 1}" if held.found else ""
        return replace(wanted, action="saved", key=key, revision=saved.number, reason=f"{wanted.reason}{kept}")

    def _record(self, scope: Scope, goal: str, kept: KeptResult) -> None:
        body: dict[str, Json] = {
            "goal": goal[:GOAL_KEPT_CHARS],
            "tool": kept.tool,
            "mode": kept.mode,
            "action": kept.action,
            "reason": kept.reason,
            "key": kept.key,
            "revision": kept.revision,
            "covers": kept.covers,
            "model_calls": kept.model_calls,
            "outcome": kept.outcome,
            "took_ms": kept.took_ms,
        }
        decision = Decision(kept.id, self.clock.now(), scope.address, "after", without_secrets_in(body))
        self.store.write(scope.owner, lambda tx: tx.oversight.put_decision(decision, keep=DECISIONS_KEPT))


def _series_words(offer: SeriesOffer) -> str:
    if offer.entries == 1:
        return f"an entry with `{offer.time_field}` and an id: it belongs in a series"
    return f"{offer.entries} entries with `{offer.time_field}` and ids: they belong in a series"


def check_tool(tool: str) -> str:
    """`tool` if a tool can be called that."""
    return check_id(tool, "tool", bytes_max=TOOL_BYTES_MAX)


def _check(result: AfterRequest) -> None:
    check_tool(result.tool)
    asked: object = result.asked
    arguments = isinstance(asked, Mapping) and all(isinstance(name, str) for name in asked)
    if not (asked is None or isinstance(asked, AskedTool) or arguments):
        raise InvalidInput(f"`arguments` = {brief(asked, 60)} must be an object: the arguments of the tool by their names")
    if utf8_size(result.goal, "`goal`") > GOAL_BYTES_MAX:
        raise LimitExceeded(f"`goal` has more than {GOAL_BYTES_MAX} bytes; say it in fewer words")
    check_deadline(result.deadline_s)
    if result.mode is not None:
        check_choice(result.mode, "mode", SAVE_MODES)
    for name in ("allow", "deny"):
        given = getattr(result, name)
        is_list = isinstance(given, Collection) and not isinstance(given, str)
        if given is None and name == "allow":
            continue
        if not is_list or not all(isinstance(one, str) for one in given):
            raise InvalidInput(f"`{name}` = {brief(given, 60)} must be a list of tool names")
