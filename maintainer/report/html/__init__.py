"""Reports as one HTML file: no network, readable anywhere without its script, and every name in it only text.

``charts`` draws, ``*_view`` gather what a page shows as plain values, ``page`` and ``templates`` lay it out.
"""
