"""Read YAML 1.2 strictly, with the position of every key and value, and find the files of a project.

Imports ``diagnostics`` only. What a file may hold at all is refused in `yaml_reader`, values in `yaml_composer` and
`yaml_document`.
"""
