"""The constants of ranking, which lie on plateaus of the benchmark; see ``docs/ranking.md``."""

COSINE_SHARE, BM25_SHARE = 0.6, 0.4
#: The best of many passages is near by chance: subtracted for each factor of e in their number.
LENGTH_PENALTY = 0.03

# Dates

DATE_SHARE = 1.0
#: How fast a score falls beside a span, by its length: a quarter of a day beside a day, a week
#: beside a month. Outside of it a message has at most the second score.
DATE_HALF_LIFE, BESIDE_DATE = 0.25, 0.5
#: How much a day without a year counts in the years before the latest with a message from it.
EARLIER_YEAR = 0.5
#: How much a date counts that may be a name, such as "April": the words of the question decide.
DOUBTFUL_DATE = 0.25
#: The share of the question's words that make a message more likely than a date, if all from around
#: the date have at most the second share of them.
MOST_WORDS, HARDLY_A_WORD = 0.5, 0.2

# Words around a message

NEIGHBOUR_WEIGHT, NEIGHBOURS = 0.3, 2  # of a neighbour's word, and their number on each side
MOST_LENT_WORDS = 60  # words that a neighbour contributes, so that long ones have no advantage
TITLE_WEIGHT = 0.3  # the weight of a word in the title of a message's conversation

# Scores around a message

REPLY_LINK, SHORT_REPLY = 0.2, 60  # of the question's score, in replies of up to so many words
WINDOW_SHARE, WINDOW = 0.3, 10  # of the best score among so many messages on each side
#: Short messages say little by themselves: in conversations of short messages, this share of a
#: message's score is the mean around it, and a question loses this share of its own score.
MEAN_SHARE, MEAN_WINDOW, ASKING_LOSS = 0.3, 4, 0.07
SHORT_TALK = 60  # words on average up to which messages are short; at twice as many they are not
