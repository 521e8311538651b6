"""What a chat model is asked, and how its answer is read."""
