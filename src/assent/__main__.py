"""`python -m assent` is `assent`."""

from assent.cli import main

main()
