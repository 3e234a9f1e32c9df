"""The web page: conversations, the context window of a question, and usage over time.

``handlers`` lists the addresses and answers requests, ``access`` checks sessions,
``read_conversations``, ``window`` and ``usage`` query the store, and ``templates`` and
``static`` are sent to the browser. The server has checked Host, Origin and ``Sec-Fetch-Site``
before.
"""
