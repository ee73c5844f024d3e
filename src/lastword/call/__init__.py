"""The life of one call: drawing, asking, running, and what is left behind when a program dies."""
