"""The shares of budget and priority by which a window is filled, and other sizes of windows."""

# Of the budget

NEWEST_SHARE, PINNED_SHARE = 1 / 8, 1 / 4  # at most; the latter includes the newest
#: The running session's share while others fit; that of the newest below a number of tokens.
RUNNING_SHARE, SMALL_BUDGET = 1 / 4, 500
#: Once something did not fit and less than the first share of the budget is left, candidates whose
#: priority is below the second share of the last one taken are not tried.
LITTLE_LEFT, FAR_BELOW = 0.15, 0.75
SUMMARIES_SHARE = 1 / 4  # at most
RESERVE_SHARE = 1 / 2  # of the reserve for the answer, which history may borrow beside sections
COMPACT_BELOW = 500  # tokens; then, and in a session, one line introduces what is recalled
#: A recall in a session, which nobody asked for, has this share of the budget, or so many tokens.
SESSION_SHARE, SESSION_LEAST = 1 / 3, 400

# Of a message's priority

#: For its first excerpt; less for a reply, as replies are longer and more alike, and least if the
#: question is about the user, whose own messages hold the answer.
FIRST_SHARE, REPLY_SHARE, REPLY_SHARE_ABOUT_USER = 0.85, 0.8, 0.6
#: Each further excerpt has this share of the previous one's priority, a reply's the second one.
NEXT_FACTOR, NEXT_REPLY_FACTOR = 0.92, 0.9
#: The least share for the first excerpt of the best match, also of one about the user.
BEST_SHARE, BEST_SHARE_ABOUT_USER = 1.0, 0.92
NEAREST_SHARE = 0.7  # the same for the message with the highest cosine
STANDING_FACTOR = 1.4  # a standing instruction is ranked at this multiple of its priority
