"""The harness of the proof and its report: nothing is kept that was not tried, and what was tried can be read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
from proof import report  # noqa: E402
from proof.catalogue import all_promises  # noqa: E402
from proof.harness import Outcome, Promise, Round, run  # noqa: E402


def _outcome(tmp_path, work, *, case=None, evidence=(), figure="{wrong} wrong") -> Outcome:
    promise = Promise("P1", "it holds", "small tries", work, evidence, figure)
    return run(promise, Round("P1", 5, "quick", tmp_path, case))


def _cases(total, then=lambda _trial, _case: None):
    def work(trial):
        for case in trial.cases(quick=total, full=total, name="tries"):
            then(trial, case)

    return work


# -- verdicts


@pytest.mark.parametrize("total", [0, 3])
def test_a_round_in_which_no_case_was_tried_is_unproven(tmp_path, total):
    outcome = _outcome(tmp_path, _cases(total), case=7 if total else None)
    assert outcome.verdict == "unproven"
    assert len(outcome.unmet) == 1


def test_a_round_without_any_loop_of_cases_is_unproven(tmp_path):
    assert _outcome(tmp_path, lambda _: None).verdict == "unproven"
    assert _outcome(tmp_path, lambda _: None, case=0).no_such_case.endswith("there are: none")


def test_a_missing_case_is_told_with_all_the_cases_there_are(tmp_path):
    def work(trial):
        _cases(3)(trial)
        assert [*trial.cases(quick=8, full=9, name="floods")] == []

    assert _outcome(tmp_path, work, case=8).no_such_case == (
        "P1 has no case 8 in its quick round; there are: tries 0 to 2, floods 0 to 7"
    )


def test_a_case_of_the_second_loop_only_is_a_case(tmp_path):
    def work(trial):
        _cases(3)(trial)
        for _ in trial.cases(quick=8, full=9, name="floods"):
            trial.count("flooded")

    outcome = _outcome(tmp_path, work, case=5, evidence=("never",))
    assert (outcome.verdict, outcome.counts["flooded"], outcome.no_such_case) == ("kept", 1, "")


def test_a_case_that_was_begun_and_left_counts_as_tried(tmp_path):
    def work(trial):
        for _ in trial.cases(quick=3, full=3):
            break

    assert _outcome(tmp_path, work, case=0).verdict == "kept"


def test_a_fault_that_was_never_met_leaves_the_whole_round_unproven(tmp_path):
    outcome = _outcome(tmp_path, _cases(3), evidence=("a fault",))
    assert (outcome.verdict, outcome.unmet) == ("unproven", ("a fault",))


def test_a_trial_that_breaks_before_its_first_case_has_failed(tmp_path):
    def work(_):
        raise RuntimeError("no server")

    outcome = _outcome(tmp_path, work, case=9)
    assert (outcome.verdict, outcome.no_such_case) == ("failed", "")


# -- repeating


def test_the_command_that_repeats_keeps_the_case_that_was_asked_for(tmp_path):
    def work(trial):
        for _ in trial.cases(quick=3, full=3):
            raise RuntimeError("no server")

    assert _outcome(tmp_path, work, case=2).replay == "python -m proof run P1 --seed 5 --quick --case 2"


def test_the_command_that_repeats_names_the_first_case_that_went_wrong(tmp_path):
    outcome = _outcome(tmp_path, _cases(3, lambda trial, case: trial.check(case.number != 1, "lost", "one")))
    assert (outcome.verdict, outcome.replay) == ("broken", "python -m proof run P1 --seed 5 --quick --case 1")


# -- the report


def _told(outcome: Outcome) -> str:
    return report.as_markdown([outcome], {"cores": 2})


def test_how_it_was_tried_stands_below_the_table_and_not_in_it(tmp_path):
    head, _, below = _told(_outcome(tmp_path, _cases(3))).partition("**P1**")
    assert "small tries" not in head
    assert "- tried by: small tries\n" in below
    assert "| P1 | it holds | 0 wrong | kept | 5 (quick) | 0 s |" in head


def test_a_cell_stays_one_cell_whatever_it_says():
    assert report.row("a | b", "c\nd") == "| a \\| b | c d |"


def test_what_was_measured_reads_as_text(tmp_path):
    def measure(trial, _case):
        trial.facts.update(
            calls={"append": 1_200, "given up": {"whole": 0}},
            none=[],
            small="1.5 MiB",
            many=[f"n{one}" for one in range(15)],
            ok=True,
        )

    told = _told(_outcome(tmp_path, _cases(1, measure)))
    assert "- measured: calls: append 1,200, given up whole 0\n" in told
    assert "- measured: none: none\n" in told
    assert "- measured: small: 1.5 MiB\n" in told
    assert "n10, n11 … and 3 more\n" in told
    assert "- measured: ok: yes\n" in told
    assert "{" not in told


def test_long_lists_of_what_was_met_are_cut_and_begin_with_what_the_verdict_depends_on(tmp_path):
    def meet(trial, _case):
        for name in (*(f"fault {one:02}" for one in range(20)), "the one"):
            trial.met(name)
        trial.met("never", 0)

    told = _told(_outcome(tmp_path, _cases(1, meet), evidence=("the one",)))
    assert "- met: the one (1), fault 00 (1), " in told
    assert "fault 10 (1) … and 9 more\n" in told
    assert "never" not in told


def test_the_same_wrong_of_many_cases_is_told_once_with_the_end_of_what_was_raised(tmp_path):
    def fail(trial, _case):
        with trial.guarded("refused"):
            raise RuntimeError("no room | left")

    told = _told(_outcome(tmp_path, _cases(15, fail)))
    assert told.count("RuntimeError: no room | left") == 1
    assert "- refused (case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 …):\n" in told


def test_all_promises_begin_alike():
    assert [one.id for one in all_promises().values() if not one.says[:1].islower()] == []


# -- figures


def test_the_figure_of_p6_counts_the_answers_that_were_really_lost(tmp_path):
    from proof.promises import p06_once

    def lose(trial, case):
        if case.number < 2:
            p06_once._lost(trial, p06_once.PROMISE.evidence[0])

    outcome = _outcome(tmp_path, lambda trial: _six(trial, lose), figure=p06_once.PROMISE.figure)
    assert outcome.figure == (
        "0 doubled, lost, torn or left open over 2 requests whose answer was lost, of 6, and 0 cancelled calls"
    )


def _six(trial, then):
    for case in trial.cases(quick=6, full=6, name="requests"):
        then(trial, case)
