"""Commands for the work with an agent: its texts, the overseer, its tools."""
