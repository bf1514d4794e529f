"""The JSON Schemas of policy files, the check of a document against them, and the words of its findings."""
