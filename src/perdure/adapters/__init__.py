"""The outside world behind the ports. Each folder stands alone; what they share lies here, one level up."""
