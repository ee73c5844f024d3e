"""The loop between a conversation and a session, and whom it talks to."""
