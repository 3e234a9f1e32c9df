"""``reservoir serve``: a memory proxy in front of any model, a web page, and MCP over HTTP.

``process`` runs the server, ``app`` routes requests, ``security`` checks them, ``store_threads``
access the store, ``proxy`` forwards requests to models, and ``web`` is the page. Most of these
modules need the extra ``serve``.
"""
