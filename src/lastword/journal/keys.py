"""The keys that only one record of a store ever takes: what makes an answer, a start and a stop happen once."""

from __future__ import annotations


def answer_key(nonce: str) -> str:
    """The key that makes an answer the only one."""
    return f"answer:{nonce}"


def burn_key(nonce: str) -> str:
    """The key that an approval takes to be spent."""
    return f"burn:{nonce}"


def start_key(call_id: str, starts: int) -> str:
    """The key that an approved call takes to start, having started so often: whoever comes second does not run it."""
    return f"start:{call_id}:{starts}"


def stop_key(number: int) -> str:
    """The key that numbers the acts of stopping everything, so that a look at the next one finds it."""
    return f"stop:{number}"
