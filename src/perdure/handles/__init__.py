"""What a caller holds: handles bound to one scope. There is no data call without one."""
