"""What every surface shows of a card, whatever draws it."""
