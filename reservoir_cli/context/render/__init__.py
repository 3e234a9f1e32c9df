"""The finished window, and the formats it is rendered in. Pure.

``text_and_markdown`` and ``request_bodies`` render the window's turns, ``recalled`` quotes the
recalled messages in all of them, ``json`` reports everything about the window, and ``frame`` wraps
a text. Tokens are counted on the rendered output.
"""
