"""What is relevant to a goal, and what is kept of a tool's result."""
