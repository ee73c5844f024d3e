"""Consent as data: what is asked for, what was answered, what came of it. Nothing here waits, runs or remembers."""
