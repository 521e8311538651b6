"""Commands about what is known of a user, and what an agent is to go by."""
