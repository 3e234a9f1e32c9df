"""The finished window, and how it is written down for whoever reads it. Pure.

``turns`` lays the window out, ``text`` and ``request_bodies`` write it, ``json`` tells all
about it, ``frame`` goes around it. What is counted is what these write.
"""
