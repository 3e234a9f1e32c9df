"""The finished window, and the formats it is rendered in. Pure.

``turns`` lists the window's turns, ``text`` and ``request_bodies`` render them, ``json`` reports
everything about the window, and ``frame`` wraps a text. Tokens are counted on the rendered output.
"""
