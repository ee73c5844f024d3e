"""What travels between the server, whoever talks to it, and the page."""
