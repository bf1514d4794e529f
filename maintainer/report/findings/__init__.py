"""What a person has to know, for ``validate``, a run and ``verify`` alike: one ``Finding``, written for each reader.

GitHub annotations, JUnit XML and SARIF are written here and nowhere else. A new form of findings goes here; which
findings there are is decided in ``validate`` and ``run``.
"""
