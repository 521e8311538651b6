"""What works on one session at a time: a chat, and context documents."""
