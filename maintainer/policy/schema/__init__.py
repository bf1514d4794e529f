"""Check a document against the JSON Schema of its kind, in words of our own.

May import ``yaml`` and below. The types and bounds of a setting are those of `policy_settings` and
`project_settings`, of any other key those of ``schemas/*.json``; a new kind of text (``x-format``) into `formats`.
"""
