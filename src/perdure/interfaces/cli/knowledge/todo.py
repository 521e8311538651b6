"""`perdure todo …`: what the user means to do, and what the agent itself is doing. `perdure instruction …`: lasting orders."""

from __future__ import annotations

from perdure.handles.knowledge import InstructionHandle, TaskHandle, TodoHandle
from perdure.interfaces.cli.derived import Form, Group, each, single
from perdure.interfaces.cli.lines.knowledge import instruction_entry, task_entry, todo_entry

app = Group("todo", "What the user wants to do, and the agent's own tasks.")
app.offer((TodoHandle, "add"), single(todo_entry), form=Form(names={"due_at": "due"}))
app.offer((TodoHandle, "list"), each(todo_entry, "nothing to do"), example="--due-before 2026-02-01T00:00:00+00:00")
app.offer((TodoHandle, "complete"), single(todo_entry), name="done")
app.offer((TodoHandle, "skip"), single(todo_entry))
app.offer((TodoHandle, "reopen"), single(todo_entry))

tasks_app = Group("todo task", "Tasks of the agent itself.", last="--user ana --agent planner")
tasks_app.offer((TaskHandle, "start"), single(task_entry))
tasks_app.offer((TaskHandle, "update"), single(task_entry), needs_one=True, example="k-1 --state completed")
tasks_app.offer((TaskHandle, "list"), each(task_entry, "no tasks here"))
app.add(("task", tasks_app))

instructions_app = Group("instruction", "Standing instructions of the user to this agent.", last="--user ana --agent coach")
instructions_app.offer((InstructionHandle, "list"), each(instruction_entry, "no standing instructions"))
instructions_app.offer((InstructionHandle, "add"), single(instruction_entry))
instructions_app.offer((InstructionHandle, "withdraw"), single(instruction_entry))
