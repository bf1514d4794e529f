"""A second judge of policy files: the jsonschema package, on the same schemas.

``validate`` checks a file with a walk of our own, for its messages and its speed. Before a command acts on a table,
jsonschema must agree: two readers that share no code are not wrong in the same way. It is imported only then.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from maintainer.errors import ProjectError
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.schema.schema_keys import POLICY_SCHEMA, PROJECT_SCHEMA, load_schema
from maintainer.policy.yaml.yaml_document import Document


@lru_cache(maxsize=2)
def reference_validator(name: str) -> Any:  # noqa: ANN401 (jsonschema's own class, imported late)
    """Return jsonschema's validator of one of our schemas. An integer is never a boolean or ``1.0``."""
    import jsonschema
    from referencing import Registry, Resource

    resources = [(one, Resource.from_contents(load_schema(one))) for one in (POLICY_SCHEMA, PROJECT_SCHEMA)]
    strict = jsonschema.Draft7Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    # Untyped in the stubs; what comes out is a class like the one that went in.
    extend: Any = jsonschema.validators.extend
    validator = extend(jsonschema.Draft7Validator, type_checker=strict)
    return validator(load_schema(name), registry=Registry().with_resources(resources))


def check_again(documents: Iterable[Document]) -> None:
    """Let jsonschema judge documents that our own check accepted.

    Raises:
        ProjectError: E628, it refuses one: the two disagree, so nothing is done.
    """
    for document in documents:
        kind = kind_of(document)
        if kind is DocumentKind.TESTS:
            continue
        name = PROJECT_SCHEMA if kind is DocumentKind.PROJECT else POLICY_SCHEMA
        error = next(iter(reference_validator(name).iter_errors(document.data)), None)
        if error is not None:
            path = tuple(error.absolute_path)
            raise ProjectError(
                "jsonschema refuses a file that our own check accepts",
                code="E628",
                where=f"{document.file}:{document.span_of(path).line}",
                found=error.message.splitlines()[0][:300],
                help="nothing was done; report this file, and write the value as the schema's examples do",
            )
