"""The commands of `assent`, a room for each family. cli.py knows which command lives where."""
