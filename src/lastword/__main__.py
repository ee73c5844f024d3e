"""`python -m lastword` is `lastword`."""

from lastword.cli import main

main()
