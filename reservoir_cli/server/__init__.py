"""``reservoir serve``: a memory proxy in front of any model, a page, and MCP over HTTP.

``run`` is the process, ``app`` the routes, ``security`` says who may ask, ``stores`` runs what
needs the store in threads, ``proxy`` passes requests on to models, and ``web`` is the page.
Everything but ``token`` and ``state`` imports what the extra ``serve`` brings.
"""
