"""Goal context before a goal, and what is kept after a tool. Writes decisions, state and series."""
