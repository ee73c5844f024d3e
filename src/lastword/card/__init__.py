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

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.card.arguments import read_arguments as read_arguments
    from lastword.card.arguments import read_value as read_value
    from lastword.card.delta import difference as difference
    from lastword.card.delta import put_in as put_in
    from lastword.card.done import AnswerResult as AnswerResult
    from lastword.card.done import Done as Done
    from lastword.card.done import DoneInWords as DoneInWords
    from lastword.card.done import DoneSeverally as DoneSeverally
    from lastword.card.done import NewKey as NewKey
    from lastword.card.done import TriedModel as TriedModel
    from lastword.card.draft import Draft as Draft
    from lastword.card.faces import EFFECT_WORDS as EFFECT_WORDS
    from lastword.card.faces import FOLD_CHARACTERS as FOLD_CHARACTERS
    from lastword.card.faces import FOLD_DIFF_LINES as FOLD_DIFF_LINES
    from lastword.card.faces import FOLD_LINES as FOLD_LINES
    from lastword.card.faces import TAB as TAB
    from lastword.card.faces import Face as Face
    from lastword.card.faces import Passage as Passage
    from lastword.card.faces import diff_rows as diff_rows
    from lastword.card.faces import face as face
    from lastword.card.faces import one_line as one_line
    from lastword.card.form import FormField as FormField
    from lastword.card.form import QuestionView as QuestionView
    from lastword.card.grants import GRANT_WORD as GRANT_WORD
    from lastword.card.grants import GRANT_WORDS as GRANT_WORDS
    from lastword.card.grants import NO_GRANTS as NO_GRANTS
    from lastword.card.grants import ExplainedCall as ExplainedCall
    from lastword.card.grants import GrantBound as GrantBound
    from lastword.card.grants import GrantEntry as GrantEntry
    from lastword.card.grants import GrantSettled as GrantSettled
    from lastword.card.grants import GrantsFound as GrantsFound
    from lastword.card.grants import GrantStep as GrantStep
    from lastword.card.grants import GrantSum as GrantSum
    from lastword.card.grants import RuleEntry as RuleEntry
    from lastword.card.grants import RuleFile as RuleFile
    from lastword.card.inbox import called as called
    from lastword.card.inbox import entry_of as entry_of
    from lastword.card.inbox import groups as groups
    from lastword.card.inbox import is_alone as is_alone
    from lastword.card.inbox import summary_of as summary_of
    from lastword.card.items import BusyState as BusyState
    from lastword.card.items import CallContent as CallContent
    from lastword.card.items import CallEnd as CallEnd
    from lastword.card.items import CallItem as CallItem
    from lastword.card.items import CallReply as CallReply
    from lastword.card.items import CallReport as CallReport
    from lastword.card.items import CardArgument as CardArgument
    from lastword.card.items import CardPreview as CardPreview
    from lastword.card.items import CardQuestion as CardQuestion
    from lastword.card.items import CardView as CardView
    from lastword.card.items import ConversationEntry as ConversationEntry
    from lastword.card.items import ConversationsFound as ConversationsFound
    from lastword.card.items import DiffRow as DiffRow
    from lastword.card.items import EarlierItems as EarlierItems
    from lastword.card.items import ExportedRecord as ExportedRecord
    from lastword.card.items import InboxChange as InboxChange
    from lastword.card.items import InboxEntry as InboxEntry
    from lastword.card.items import InboxGone as InboxGone
    from lastword.card.items import InboxMissed as InboxMissed
    from lastword.card.items import Item as Item
    from lastword.card.items import ItemDelta as ItemDelta
    from lastword.card.items import ItemGone as ItemGone
    from lastword.card.items import MessageItem as MessageItem
    from lastword.card.items import MissingArgument as MissingArgument
    from lastword.card.items import PageState as PageState
    from lastword.card.items import ScriptItem as ScriptItem
    from lastword.card.items import SessionSpan as SessionSpan
    from lastword.card.items import SessionTimeline as SessionTimeline
    from lastword.card.items import SharedText as SharedText
    from lastword.card.items import Surface as Surface
    from lastword.card.items import TextPiece as TextPiece
    from lastword.card.items import TokenTotal as TokenTotal
    from lastword.card.origin import script_line as script_line
    from lastword.card.origin import script_origin as script_origin
    from lastword.card.question import DECLINE as DECLINE
    from lastword.card.question import GIVE as GIVE
    from lastword.card.question import question_view as question_view
    from lastword.card.reading import in_one_line as in_one_line
    from lastword.card.reading import literal as literal
    from lastword.card.second_act import WORD as WORD
    from lastword.card.second_act import is_typed as is_typed
    from lastword.card.second_act import why_two as why_two
    from lastword.card.second_act import word_for as word_for
    from lastword.card.servers import ClientEntry as ClientEntry
    from lastword.card.servers import SeenServer as SeenServer
    from lastword.card.servers import SeenTool as SeenTool
    from lastword.card.servers import ServerEntry as ServerEntry
    from lastword.card.servers import ServerQuestion as ServerQuestion
    from lastword.card.servers import ServersFound as ServersFound
    from lastword.card.servers import ServerTool as ServerTool
    from lastword.card.settings import PresetChoice as PresetChoice
    from lastword.card.settings import Settings as Settings
    from lastword.card.settings import ToolEntry as ToolEntry
    from lastword.card.text_units import first_units as first_units
    from lastword.card.text_units import units as units
    from lastword.card.troubles import trouble as trouble
else:
    __getattr__ = open_door(
        __name__,
        arguments="read_arguments read_value",
        delta="difference put_in",
        done="AnswerResult Done DoneInWords DoneSeverally NewKey TriedModel",
        draft="Draft",
        faces="EFFECT_WORDS FOLD_CHARACTERS FOLD_DIFF_LINES FOLD_LINES Face Passage TAB diff_rows face one_line",
        form="FormField QuestionView",
        grants="ExplainedCall GRANT_WORD GRANT_WORDS GrantBound GrantEntry GrantSettled GrantStep GrantSum "
        "GrantsFound NO_GRANTS RuleEntry RuleFile",
        inbox="called entry_of groups is_alone summary_of",
        items="BusyState CallContent CallEnd CallItem CallReply CallReport CardArgument CardPreview CardQuestion "
        "CardView ConversationEntry ConversationsFound DiffRow EarlierItems ExportedRecord InboxChange "
        "InboxEntry InboxGone InboxMissed Item ItemDelta ItemGone MessageItem MissingArgument PageState "
        "ScriptItem SessionSpan SessionTimeline SharedText Surface TextPiece TokenTotal",
        origin="script_line script_origin",
        question="DECLINE GIVE question_view",
        reading="in_one_line literal",
        second_act="WORD is_typed why_two word_for",
        servers="ClientEntry SeenServer SeenTool ServerEntry ServerQuestion ServerTool ServersFound",
        settings="PresetChoice Settings ToolEntry",
        text_units="first_units units",
        troubles="trouble",
    )
