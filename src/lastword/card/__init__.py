"""What every surface shows, whatever draws it.

face.py       what a card says, as data: every word of it, before it gets a shape
question.py   what a question of a running tool says
items.py      a conversation with its cards, as it goes to the page and to terminals
origin.py     where in a script a call stands
arguments.py  `name=value` in the type the tool wants
draft.py      the arguments of a card as the person has changed them so far
trouble.py    what is said when something breaks inside
units.py      lengths as browsers count them
"""
