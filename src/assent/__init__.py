"""assent gives an AI assistant real tools and leaves the last word with a person."""
