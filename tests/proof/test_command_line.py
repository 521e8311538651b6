"""The command line of the proof: what it takes, what it refuses in one line, and where it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
import proof.__main__ as command_line  # noqa: E402
import system_programs  # noqa: E402
from proof import breaking, needs, simulation  # noqa: E402
from proof.arguments import Parser  # noqa: E402
from proof.catalogue import all_promises  # noqa: E402
from proof.harness import Promise, Round, run  # noqa: E402

RAN: list[str] = []
"""The promises that were tried."""
TRIED = breaking.tried


def _some_cases(trial: Round) -> None:
    for case in trial.cases(quick=3, full=5, name="tries"):
        if case.number == 0:
            trial.met("a fault")


def _promise(name: str) -> Promise:
    return Promise(name, f"{name} holds", "small tries", _some_cases, ("a fault",), "{wrong} wrong over {tries} tries")


@pytest.fixture
def reports(monkeypatch, tmp_path):
    """Three small promises instead of the real ones, tried in this process; the default folder of the reports."""

    def here(promise, seed, given, _running):
        RAN.append(promise.id)
        return run(promise, Round(promise.id, seed, "quick" if given.quick else "full", tmp_path, given.case, given.part))

    monkeypatch.setattr(command_line, "_promises", lambda: {name: _promise(name) for name in ("P1", "P6", "P18")})
    monkeypatch.setattr(command_line, "_in_a_process", here)
    monkeypatch.setattr(command_line, "REPORTS", tmp_path / "reports")
    RAN.clear()
    return tmp_path / "reports"


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.md")}


# -- cases


def test_a_case_that_does_not_exist_is_a_usage_error_that_names_the_range(reports, capsys):
    assert command_line.main(["run", "P6", "--quick", "--seed", "3", "--case", "100000"]) == 2
    assert "P6 has no case 100000 in its quick round; there are: tries 0 to 2" in capsys.readouterr().err
    assert _names(reports) == set()


def test_a_case_below_zero_is_refused_before_anything_runs(reports, capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(["run", "P6", "--case", "-1"])
    assert ended.value.code == 2
    assert RAN == []
    assert "'-1' is not a whole number from 0 on" in capsys.readouterr().err


def test_a_case_that_exists_is_kept_without_the_faults_of_the_others(reports):
    assert command_line.main(["run", "P6", "--quick", "--seed", "3", "--case", "2"]) == 0
    [outcome] = json.loads((reports / "P6-quick-case-2.json").read_text())["outcomes"]
    assert (outcome["verdict"], outcome["counts"]["tries"], outcome["evidence"]) == ("kept", 1, {})


@pytest.mark.parametrize("promises", [[], ["P1", "P6"]])
def test_a_case_needs_exactly_one_promise(reports, capsys, promises):
    assert command_line.main(["run", *promises, "--case", "0"]) == 2
    assert RAN == []
    assert "--case is a case of one promise" in capsys.readouterr().err


def test_the_parts_of_a_round_try_each_of_its_cases_once(reports):
    for part in ("1/3", "2/3", "3/3"):
        assert command_line.main(["run", "P6", "--seed", "3", "--part", part]) == 0
    told = [json.loads((reports / f"P6-part-{number}-of-3.json").read_text())["outcomes"][0] for number in (1, 2, 3)]
    assert [one["counts"]["tries"] for one in told] == [1, 2, 2]
    assert [one["replay"] for one in told] == [f"python -m proof run P6 --seed 3 --part {number}/3" for number in (1, 2, 3)]


def test_a_promise_named_twice_is_tried_once(reports):
    assert command_line.main(["run", "p6", "P6", "--case", "0"]) == 0
    assert RAN == ["P6"]


def test_an_unknown_promise_is_refused_with_those_there_are(reports, capsys):
    assert command_line.main(["run", "P6", "P99"]) == 2
    assert "no promise is called P99; there are P1, P6, P18" in capsys.readouterr().err


# -- options


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--jobs", "0"],
        ["run", "--se", "3"],
        ["run", "--cas", "3"],
        ["run", "P6", "--part", "2"],
        ["run", "P6", "--part", "0/2"],
        ["run", "P6", "--part", "3/2"],
        ["defects", "--jobs", "0"],
        ["simulate", "--seeds", "0"],
        ["simulate", "--seeds", "-3"],
        ["simulate", "--calls", "0"],
        ["simulate", "--calls", "-4"],
        ["simulate", "--jobs", "0"],
        ["simulate", "--see", "7"],
        ["simulate", "--seed", "7", "--seeds", "2"],
        ["simulate", "--seed", "7", "--start", "2"],
        ["simulate", "--seed", "7", "--backend", "memory"],
    ],
    ids=" ".join,
)
def test_numbers_that_mean_nothing_and_half_words_are_usage_errors(reports, monkeypatch, words):
    monkeypatch.setattr(simulation, "simulate", lambda *_, **__: pytest.fail("something ran"))
    with pytest.raises(SystemExit) as ended:
        command_line.main(words)
    assert ended.value.code == 2
    assert RAN == []


def test_one_seed_of_the_simulation_is_that_seed_only(monkeypatch):
    asked = []
    monkeypatch.setattr(simulation, "simulate", lambda seeds, **_: asked.extend(seeds) or [])
    assert command_line.main(["simulate", "--seed", "7"]) == 0
    assert command_line.main(["simulate", "--start", "3", "--seeds", "2"]) == 0
    assert asked == [7, 3, 4]


def test_the_command_that_repeats_a_seed_is_taken(monkeypatch):
    again = simulation.Failure(7, "it holds", "it does not", "memory", 12).replay
    given = simulation._given(again.removeprefix("python -m proof simulate ").split())
    assert (given.start, given.seeds, given.calls, given.backend, given.trace) == (7, 1, 12, "memory", True)


def test_commands_take_whole_options_only_however_they_were_made():
    parser = Parser(allow_abbrev=True)
    parser.add_subparsers().add_parser("deeper").add_argument("--seeds")
    with pytest.raises(SystemExit):
        parser.parse_args(["deeper", "--seed", "1"])


# -- reports


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([], "report.md"),
        (["P18", "P6", "P1"], "report.md"),
        (["--quick"], "report-quick.md"),
        (["P18", "P6"], "P6-P18.md"),
        (["P6", "--quick"], "P6-quick.md"),
        (["P6", "--case", "3"], "P6-case-3.md"),
        (["P6", "--part", "2/3"], "P6-part-2-of-3.md"),
    ],
    ids=str,
)
def test_only_a_full_run_of_all_takes_the_place_of_its_report(reports, words, name):
    assert command_line.main(["run", "--seed", "1", *words]) == 0
    assert _names(reports) == {name}


def test_a_folder_that_was_named_holds_the_report_under_its_own_name(reports, tmp_path):
    assert command_line.main(["run", "P6", "--seed", "1", "--report", str(tmp_path / "deep" / "mine")]) == 0
    assert {path.name for path in (tmp_path / "deep" / "mine").iterdir()} == {"report.md", "report.json"}
    assert not reports.exists() or not _names(reports)


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(reports, capsys, tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/proof")):
        assert command_line.main(["run", "P6", "--report", str(folder)]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert f"no report can be written into {folder}: " in line
    assert RAN == []


# -- what the machine must have


def test_the_list_is_read_without_anything_installed_and_is_that_of_the_promises():
    told = {name: (says, tried_by) for name, says, tried_by in command_line.listed()}
    assert told == {one.id: (one.says, one.tried_by) for one in all_promises().values()}
    bare = [sys.executable, "-S", "-m", "proof"]
    listed = subprocess.run([*bare, "list"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout.startswith("P1 ")
    for words in (["run", "P6"], ["simulate"]):
        ended = subprocess.run([*bare, *words], cwd=ROOT, capture_output=True, text=True, check=False)
        [line] = ended.stderr.splitlines()
        assert (ended.returncode, "`make proof`" in line, "`.venv/bin/python -m proof`" in line) == (2, True, True)


def test_a_missing_module_of_the_project_itself_is_no_matter_of_installing():
    with pytest.raises(ModuleNotFoundError):
        needs.installed(ModuleNotFoundError("gone", name="proof.gone"))


@pytest.fixture
def _no_tools(monkeypatch):
    needs._no_compiler.cache_clear()
    monkeypatch.setattr(needs.shutil, "which", lambda _, path=None: None)
    yield
    needs._no_compiler.cache_clear()


@pytest.mark.usefixtures("_no_tools")
def test_without_a_compiler_the_promises_that_need_one_fail_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command_line.subprocess, "Popen", lambda *_, **__: pytest.fail("something ran"))
    monkeypatch.setattr(command_line, "_promises", lambda: {"P2": _promise("P2"), "P4": _promise("P4")})
    assert command_line.main(["run", "--seed", "1", "--report", str(tmp_path)]) == 1
    told = json.loads((tmp_path / "report.json").read_text())["outcomes"]
    assert [one["verdict"] for one in told] == ["failed", "failed"]
    assert {one["error"].partition(":")[0] for one in told} == {
        "a C compiler (cc, gcc or clang) is needed for P2, P3, P5, P14 and the full round of P4"
    }
    assert "Traceback" not in (tmp_path / "report.md").read_text() + capsys.readouterr().err


@pytest.mark.usefixtures("_no_tools")
def test_without_etcd_the_promise_about_several_servers_fails_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(system_programs, "_folder", lambda name: tmp_path / name)
    monkeypatch.setattr(command_line.subprocess, "Popen", lambda *_, **__: pytest.fail("something ran"))
    monkeypatch.setattr(command_line, "_promises", lambda: {"P20": _promise("P20")})
    assert command_line.main(["run", "--seed", "1", "--report", str(tmp_path)]) == 1
    [told] = json.loads((tmp_path / "report.json").read_text())["outcomes"]
    assert told["verdict"] == "failed"
    assert told["error"] == ("P20 needs etcd: etcd is not installed, and there is no apt-get to fetch it with; install etcd")
    assert needs.etcd("P19") == ""


def test_those_that_need_etcd_are_those_that_have_a_cluster():
    using = {
        f"P{int(path.name[1:3])}"
        for path in (ROOT / "proof" / "promises").glob("p*.py")
        if "from proof.cluster import" in path.read_text()
    }
    assert using == {needs.CLUSTERED}


def test_a_compiler_without_headers_is_as_good_as_none(monkeypatch, tmp_path):
    needs._no_compiler.cache_clear()
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'shim.c:1:10: fatal error: dlfcn.h: No such file' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(needs.shutil, "which", lambda _: str(compiler))
    line = needs.compiler("P5", "quick")
    needs._no_compiler.cache_clear()
    assert "dlfcn.h: No such file" in line
    assert "libc6-dev" in line
    assert "\n" not in line


def test_those_that_need_a_compiler_are_those_that_work_under_the_process():
    built = ("strikes", "kills", "recorded_disk")
    using = {
        f"P{int(path.name[1:3])}"
        for path in (ROOT / "proof" / "promises").glob("p*.py")
        if any(f"from proof.{one} import" in path.read_text() for one in built)
    }
    assert using == {*needs.COMPILED}
    assert needs.compiler("P6", "full") == ""


@pytest.mark.parametrize("words", [["run"], ["defects"]])
def test_on_another_system_it_says_so(monkeypatch, capsys, words):
    monkeypatch.setattr(needs.sys, "platform", "darwin")
    assert command_line.main(words) == 2
    assert "Linux only" in capsys.readouterr().err


# -- broken builds


def _caught(defect: breaking.Defect) -> breaking.Trial:
    return breaking.Trial(defect.name, defect.breaks, defect.caught_by, "caught", 1.0, "it was | seen")


@pytest.fixture
def results(monkeypatch, tmp_path):
    monkeypatch.setattr(breaking, "tried", _caught)
    monkeypatch.setattr(command_line, "REPORTS", tmp_path)
    return tmp_path


def test_an_unknown_broken_build_is_refused_with_those_there_are(results, capsys):
    assert command_line.main(["defects", "nosuch"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "no broken build is called nosuch; there are:"
    assert [line.strip() for line in said[1:]] == [*breaking.known()]


def test_broken_builds_are_listed_with_what_they_break_and_what_catches_them(capsys):
    assert command_line.main(["defects", "--list"]) == 0
    told = capsys.readouterr().out
    for one in breaking.known().values():
        assert f"{one.name}\n     breaks: {one.breaks}\n     caught by: {one.caught_by}\n" in told


def test_all_broken_builds_are_counted_as_they_end_and_written_down(results, capsys):
    total = len(breaking.known())
    assert command_line.main(["defects"]) == 0
    said = capsys.readouterr()
    assert f"{total} of {total} broken builds were caught" in said.out
    assert f"1 of {total}, 1 caught: " in said.err
    assert f"{total} of {total}, {total} caught: " in said.err
    assert len(json.loads((results / "defects.json").read_text())["trials"]) == total
    assert f"{total} of {total} were caught" in (results / "defects.md").read_text()


def test_some_broken_builds_never_take_the_place_of_all(results):
    first, second = [*breaking.known()][:2]
    assert command_line.main(["defects", first, first]) == 0
    assert command_line.main(["defects", first, second]) == 0
    assert _names(results) == {f"defects-{first}.md", f"defects-{first}-and-1-more.md"}


def test_one_that_is_not_caught_is_told_with_what_was_shown(results, monkeypatch, capsys):
    name = next(iter(breaking.known()))
    monkeypatch.setattr(breaking, "_promised", lambda *_: (_ for _ in ()).throw(subprocess.TimeoutExpired("x", 1)))
    monkeypatch.setattr(breaking, "broken_copy", lambda _, folder: folder)
    monkeypatch.setattr(breaking, "tried", TRIED)
    assert command_line.main(["defects", name]) == 1
    assert f"- {name}: failed: it did not end within {breaking.ROUND_S} s" in (results / f"defects-{name}.md").read_text()


@pytest.mark.usefixtures("_no_tools")
def test_without_patch_nothing_is_tried(results, monkeypatch, capsys):
    monkeypatch.setattr(breaking, "tried", lambda _: pytest.fail("something ran"))
    assert command_line.main(["defects"]) == 2
    assert capsys.readouterr().err.startswith("`patch` is needed")
