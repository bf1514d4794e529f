"""Options that several commands share, and how they are read.

``value_types`` reads sizes and durations, ``selection_options`` chooses tables, ``spec_options`` fills the one
``RunSpec`` of a command. A new option that more than one command takes goes here.
"""
