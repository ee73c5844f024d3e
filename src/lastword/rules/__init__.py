"""Rules: what a person, an organisation or a project has said once about calls, so that it need not be asked each time.

A rule never acts and never opens a card. It says of a call that it is allowed, asked about or denied, and the door
(call/) does what it says. Bounds are in `bounds`, one simple command in `command`, a rule in `rule`, files in
`reading` and `layers`, what was accepted in `accepted`, all of them together in `policy`, the decision in `deciding`.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.rules.agent_settings import SETTINGS as SETTINGS
    from lastword.rules.agent_settings import projects_started_in as projects_started_in
    from lastword.rules.client_files import gateways_folder as gateways_folder
    from lastword.rules.counting import STREAM as STREAM
    from lastword.rules.counting import Account as Account
    from lastword.rules.counting import account_of_day as account_of_day
    from lastword.rules.counting import last_day as last_day
    from lastword.rules.counting import last_use as last_use
    from lastword.rules.counting import next_use as next_use
    from lastword.rules.counting import utc_day as utc_day
    from lastword.rules.deciding import NO_KEY as NO_KEY
    from lastword.rules.deciding import ONLY_EXACT as ONLY_EXACT
    from lastword.rules.deciding import Decision as Decision
    from lastword.rules.deciding import Explanation as Explanation
    from lastword.rules.deciding import by_keys as by_keys
    from lastword.rules.deciding import decide as decide
    from lastword.rules.deciding import explained as explained
    from lastword.rules.deciding import key_of as key_of
    from lastword.rules.deciding import miss_words as miss_words
    from lastword.rules.deciding import why_keyless as why_keyless
    from lastword.rules.granting import GrantOffer as GrantOffer
    from lastword.rules.granting import GrantPast as GrantPast
    from lastword.rules.granting import answer_elsewhere as answer_elsewhere
    from lastword.rules.granting import covered_before as covered_before
    from lastword.rules.granting import folder_beside as folder_beside
    from lastword.rules.granting import folder_elsewhere as folder_elsewhere
    from lastword.rules.granting import grant_of as grant_of
    from lastword.rules.granting import granted_words as granted_words
    from lastword.rules.granting import offer_for as offer_for
    from lastword.rules.granting import settled_by as settled_by
    from lastword.rules.granting import why_not_given as why_not_given
    from lastword.rules.grants import GRANTED as GRANTED
    from lastword.rules.grants import Grant as Grant
    from lastword.rules.grants import GrantWho as GrantWho
    from lastword.rules.grants import end_session_grants as end_session_grants
    from lastword.rules.grants import granted_entry as granted_entry
    from lastword.rules.grants import how_long_words as how_long_words
    from lastword.rules.grants import is_path as is_path
    from lastword.rules.grants import left_words as left_words
    from lastword.rules.grants import living as living
    from lastword.rules.grants import nearest_grant as nearest_grant
    from lastword.rules.grants import outdated as outdated
    from lastword.rules.grants import revoke as revoke
    from lastword.rules.grants import revoke_all as revoke_all
    from lastword.rules.grants import seen_grants as seen_grants
    from lastword.rules.grants import terms_words as terms_words
    from lastword.rules.grants import waited_before as waited_before
    from lastword.rules.grants import whose_words as whose_words
    from lastword.rules.grants import why_over as why_over
    from lastword.rules.guarded import GuardedFile as GuardedFile
    from lastword.rules.layers import load_policy as load_policy
    from lastword.rules.paths import reads_two_ways as reads_two_ways
    from lastword.rules.places import PolicyPlaces as PolicyPlaces
    from lastword.rules.places import places_around as places_around
    from lastword.rules.places import places_for as places_for
    from lastword.rules.policy import Policy as Policy
    from lastword.rules.policy import folder_for as folder_for
    from lastword.rules.policy import speaks_of as speaks_of
    from lastword.rules.policy import why_not_summed as why_not_summed
    from lastword.rules.rule import PolicyRule as PolicyRule
    from lastword.rules.rule import Saying as Saying
    from lastword.rules.second_step import FIRST_CALLS as FIRST_CALLS
    from lastword.rules.second_step import GrantChoice as GrantChoice
    from lastword.rules.second_step import SeenStep as SeenStep
    from lastword.rules.second_step import step_of as step_of
    from lastword.rules.second_step import why_no_step as why_no_step
    from lastword.rules.wording import call_words as call_words
else:
    __getattr__ = open_door(__name__)
