"""Rules that find memories, todos and instructions in a message. They propose; the committer decides."""
