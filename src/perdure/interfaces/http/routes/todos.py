"""What the user means to do, what the agent itself is doing, and lasting orders of the user to an agent."""

from __future__ import annotations

from perdure.interfaces.http.derived import Route, listed, table

DENTIST = {"content": "Call the dentist", "due_at": "2030-01-31T09:30:00Z"}
PLANTS = {"content": "Water the plants", "kind": "habit", "recurrence": "0 7 * * 1"}
FLIGHTS = {"description": "Compare three flights to Lisbon"}
UNITS = {"text": "Always answer in metric units"}

router = table(
    "todos",
    Route("GET /todos", "listTodos", "todos.list", page=listed("id")),
    Route("POST /todos", "addTodo", "todos.add", status=201, examples=(DENTIST, PLANTS), links={"changeTodo": "todo=/id"}),
    Route("POST /todos/{todo}/{action}", "changeTodo", "todos.complete|skip|reopen"),
    Route("GET /tasks", "listTasks", "todos.tasks.list", page=listed("id")),
    Route("POST /tasks", "startTask", "todos.tasks.start", status=201, examples=(FLIGHTS,), links={"updateTask": "task=/id"}),
    Route("PATCH /tasks/{task}", "updateTask", "todos.tasks.update", examples=({"progress": 0.5}, {"state": "completed"})),
    Route("GET /instructions", "listInstructions", "instructions.list", page=listed("id")),
    Route(
        "POST /instructions",
        "addInstruction",
        "instructions.add",
        status=201,
        examples=(UNITS,),
        links={"withdrawInstruction": "id=/id"},
    ),
    Route("POST /instructions/{id}/withdraw", "withdrawInstruction", "instructions.withdraw"),
)
