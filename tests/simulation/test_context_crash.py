"""Processes that are killed with signal 9 while they save a context document."""

import time

import pytest

from perdure.documents import ContextManager

ID = "user:agent:1"
ROUNDS = 60


def acknowledged(ledger) -> list[str]:
    # The last line may be cut short; it was then not yet noted.
    return ledger.read_text().split("\n")[:-1] if ledger.exists() else []


def check(base, ledger) -> list[str]:
    """The document is whole, and history and ledger agree; what was said."""
    manager = ContextManager(base)
    manager.initialize()
    assert [path.name for path in base.iterdir() if path.name.endswith(".tmp")] == []
    context = manager.load(ID)
    assert context.notes == []
    said = [entry.content for entry in manager.history(ID)]
    assert said == [f"m{number}" for number in range(len(said))], "in order, none missing, none twice"
    lost = set(acknowledged(ledger)) - set(said)
    assert not lost, f"{len(lost)} acknowledged messages are lost"
    return said


@pytest.mark.parametrize("moment", ["writing", "between"])
def test_a_save_killed_before_its_rename_leaves_the_document_before_it(tmp_path, start_host, moment):
    """T-29: load gives the previous document, and no temporary file is left after the next start."""
    base, ledger = tmp_path / "context", tmp_path / "ledger"
    host = start_host("save_until_killed", base, ledger, moment)
    host.expect("ready")
    host.expect("there")
    host.kill(0)
    assert len([path for path in base.iterdir() if path.name.endswith(".tmp")]) == 1
    assert [entry.content for entry in ContextManager(base).history(ID)] == [f"m{number}" for number in range(8)]
    assert len(check(base, ledger)) == 8
    again = start_host("save_until_killed", base, ledger, "between")
    again.expect("ready")
    again.expect("there")
    again.kill(0)
    assert len(check(base, ledger)) == 16


def test_a_start_does_not_disturb_a_save_that_is_under_way(tmp_path, start_host):
    """T-29: its temporary file is not taken for one that was left behind."""
    base, ledger = tmp_path / "context", tmp_path / "ledger"
    writer = start_host("save_until_killed", base, ledger, "between")
    writer.expect("ready")
    writer.expect("there")
    other = start_host("save_until_killed", base, ledger, "anywhere")
    time.sleep(0.5)
    assert len([path for path in base.iterdir() if path.name.endswith(".tmp")]) == 1
    writer.kill(0)
    other.expect("ready")
    other.kill(0.05)
    check(base, ledger)


@pytest.mark.slow
def test_a_save_killed_at_any_moment_loses_nothing_that_was_saved(tmp_path, start_host, chance):
    base, ledger = tmp_path / "context", tmp_path / "ledger"
    for number in range(ROUNDS):
        host = start_host("save_until_killed", base, ledger, "anywhere")
        host.expect("ready")
        host.kill(chance.uniform(0, 0.06))
        if chance.random() < 0.7 or number == ROUNDS - 1:
            check(base, ledger)
    assert len(check(base, ledger)) > ROUNDS
