"""Rules: what a person, an organisation or a project has said once about calls, so that it need not be asked each time.

A rule never acts and never opens a card. It says of a call that it is allowed, asked about or denied, and the door
(call/) does what it says.

    value.py         values compared and summed exactly, and told in sentences
    reach.py         where a path leads and what a command line runs, whoever reads it
    bounds.py        what one argument may be
    rule.py          a rule: of which calls it speaks, and what it says
    files.py         where policies lie, whose they are, and what people alone change
    policy_file.py   from the text of a file to rules
    policy.py        all rules that hold, and who decides about a call
    account.py       limits that hold for all programs on one memory
    terms.py         what can be granted from a card
    grant_step.py    the second step of a card
    grants.py        what was granted, until it is used up, over, or taken back
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.rules.account import STREAM as STREAM
    from lastword.rules.account import Account as Account
    from lastword.rules.account import account_of_day as account_of_day
    from lastword.rules.account import last_day as last_day
    from lastword.rules.account import next_use as next_use
    from lastword.rules.account import utc_day as utc_day
    from lastword.rules.files import SETTINGS as SETTINGS
    from lastword.rules.files import PolicyPlaces as PolicyPlaces
    from lastword.rules.files import ProtectedFile as ProtectedFile
    from lastword.rules.files import first_protected as first_protected
    from lastword.rules.files import gateways_folder as gateways_folder
    from lastword.rules.files import places_around as places_around
    from lastword.rules.files import places_for as places_for
    from lastword.rules.files import projects_started_in as projects_started_in
    from lastword.rules.grant_step import FIRST_CALLS as FIRST_CALLS
    from lastword.rules.grant_step import GrantChoice as GrantChoice
    from lastword.rules.grant_step import GrantPast as GrantPast
    from lastword.rules.grant_step import SeenStep as SeenStep
    from lastword.rules.grant_step import covered_before as covered_before
    from lastword.rules.grant_step import folder_beside as folder_beside
    from lastword.rules.grant_step import folder_elsewhere as folder_elsewhere
    from lastword.rules.grant_step import granted_words as granted_words
    from lastword.rules.grant_step import settled_by as settled_by
    from lastword.rules.grant_step import step_of as step_of
    from lastword.rules.grant_step import why_no_step as why_no_step
    from lastword.rules.grants import GRANTED as GRANTED
    from lastword.rules.grants import GrantWho as GrantWho
    from lastword.rules.grants import answer_elsewhere as answer_elsewhere
    from lastword.rules.grants import end_session_grants as end_session_grants
    from lastword.rules.grants import grant_of as grant_of
    from lastword.rules.grants import granted_entry as granted_entry
    from lastword.rules.grants import listed_grants as listed_grants
    from lastword.rules.grants import living as living
    from lastword.rules.grants import nearest_grant as nearest_grant
    from lastword.rules.grants import outdated as outdated
    from lastword.rules.grants import revoke as revoke
    from lastword.rules.grants import revoke_all as revoke_all
    from lastword.rules.grants import waited_before as waited_before
    from lastword.rules.policy import NO_KEY as NO_KEY
    from lastword.rules.policy import ONLY_EXACT as ONLY_EXACT
    from lastword.rules.policy import Decision as Decision
    from lastword.rules.policy import Explanation as Explanation
    from lastword.rules.policy import Policy as Policy
    from lastword.rules.policy import by_keys as by_keys
    from lastword.rules.policy import decide as decide
    from lastword.rules.policy import explained as explained
    from lastword.rules.policy import folder_for as folder_for
    from lastword.rules.policy import key_of as key_of
    from lastword.rules.policy import load_policy as load_policy
    from lastword.rules.policy import miss_words as miss_words
    from lastword.rules.policy import why_keyless as why_keyless
    from lastword.rules.reach import reads_two_ways as reads_two_ways
    from lastword.rules.rule import PolicyRule as PolicyRule
    from lastword.rules.rule import Saying as Saying
    from lastword.rules.terms import GrantOffer as GrantOffer
    from lastword.rules.terms import is_path as is_path
    from lastword.rules.terms import offer_for as offer_for
    from lastword.rules.terms import why_not_given as why_not_given
    from lastword.rules.value import call_words as call_words
else:
    __getattr__ = open_door(__name__)
