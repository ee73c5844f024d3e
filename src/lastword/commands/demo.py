"""`lastword demo`."""

from __future__ import annotations

import asyncio

import click

from lastword.cli import DONE


@click.command()
def demo() -> int:
    """Play a few calls, without a model or a keypress."""
    from lastword.demo import play

    asyncio.run(play())
    return DONE
