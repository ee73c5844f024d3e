"""Rules: what a person, an organisation or a project has said once about calls, so that it need not be asked each time.

A rule never acts and never opens a card. It says of a call that it is allowed, asked about or denied, and the door
(call/) does what it says. Bounds are in `bounds`, one simple command in `command`, a rule in `rule`, files in
`reading` and `layers`, what was accepted in `accepted`, all of them together in `policy`, the decision in `deciding`.
"""
