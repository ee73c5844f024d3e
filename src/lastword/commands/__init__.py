"""The commands of `lastword`, a room for each family. cli.py knows which command lives where."""
