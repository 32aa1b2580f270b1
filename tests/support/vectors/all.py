"""Every file of vectors."""

from tests.support.vectors.coins import COINS
from tests.support.vectors.envelopes import ENVELOPES
from tests.support.vectors.ledgers import LEDGERS
from tests.support.vectors.messages import MESSAGES
from tests.support.vectors.questions import QUESTIONS
from tests.support.vectors.refusals import REFUSALS
from tests.support.vectors.replies import REPLIES
from tests.support.vectors.thresholds import THRESHOLDS

FILES = (MESSAGES, ENVELOPES, THRESHOLDS, COINS, QUESTIONS, REPLIES, REFUSALS, LEDGERS)
