"""Rules: what a person, an organisation or a project has said once about calls, so that it need not be asked each time.

A rule never acts and never opens a card. It says of a call that it is allowed, asked about or denied, and the door
(call/) does what it says.

    value.py          values compared and summed exactly, and told in sentences
    paths.py          where a path leads and what a command line runs, whoever reads it
    bounds.py         what one argument may be
    rule.py           a rule: of which calls it speaks, what it says, and what its author may not have meant
    policy_places.py  where policies lie, whose they are, and what people alone change
    policy_file.py    from the text of a file to rules
    policy.py         all rules that hold, who decides about a call, and what their author is told of them
    limits.py         limits that hold for all programs on one memory
    terms.py          what can be granted from a card
    grant_step.py     the second step of a card
    grants.py         what was granted, until it is used up, over, or taken back
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.rules.grant_step import GrantChoice, GrantPast, SeenStep, folder_beside
    from lastword.rules.grants import Grants, GrantWho
    from lastword.rules.limits import Accounts
    from lastword.rules.paths import reads_two_ways
    from lastword.rules.policy import Decision, Explanation, Policy, PolicyReview, decide
    from lastword.rules.policy_places import AgentSettings, PolicyPlaces, ProtectedFile
    from lastword.rules.rule import PolicyRule, Saying
    from lastword.rules.terms import GrantOffer
    from lastword.rules.value import call_words
else:
    __getattr__ = open_door(__name__)
