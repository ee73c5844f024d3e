"""What a tool is: its manifest, its code, where it is found, and what it may reach while it looks or runs."""
