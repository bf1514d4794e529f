"""Compile the Java classes of this folder, each once in a JVM."""

from __future__ import annotations

import threading
from importlib import resources

from maintainer.delta.jvm.gateway import Gateway, required, tested_pairs
from maintainer.delta.jvm.sessions import JavaObject
from maintainer.errors import EnvironmentUnfit

REQUIRED = required({"org.codehaus.janino.SimpleCompiler": "<init>/0 setParentClassLoader/1 cook/1 getClassLoader/0"})

_compile_lock = threading.Lock()
_compiled: list[tuple[JavaObject, dict[str, JavaObject]]] = []
"""The last JVM's gateway, and our objects in it by class: workers of a run share them."""


class CompiledClasses(Gateway):
    """Objects of Java classes of ours."""

    def compiled(self, name: str) -> JavaObject:
        """Return the one object of a Java class of ours; compiled when it is first asked for.

        Raises:
            EnvironmentUnfit: E633, it cannot be compiled.
        """
        gateway: JavaObject = self.spark.sparkContext._gateway
        with _compile_lock:
            if not _compiled or _compiled[0][0] is not gateway:
                _compiled[:] = [(gateway, {})]
            objects = _compiled[0][1]
            if name not in objects:
                objects[name] = self._compile(gateway, name)
            return objects[name]

    def _compile(self, gateway: JavaObject, name: str) -> JavaObject:
        """Compile the class in memory, beside Delta's own classes wherever those were loaded from."""
        loader = self._module("storage.LogStore$").getClass().getClassLoader()
        try:
            compiler = self._java("org.codehaus.janino.SimpleCompiler")()
            compiler.setParentClassLoader(loader)
            source = resources.files(__package__) / f"{name.rpartition('.')[2]}.java"
            compiler.cook(source.read_text(encoding="utf-8"))
            constructor = compiler.getClassLoader().loadClass(name).getConstructors()[0]
            arguments = gateway.new_array(self._java("java.lang.Object"), constructor.getParameterCount())
            if len(arguments):
                arguments[0] = self._session.sessionState().newHadoopConf()
            return constructor.newInstance(arguments)
        except Exception as error:
            raise EnvironmentUnfit(
                f"a class that maintainer commits with cannot be compiled in this Spark: {name}",
                code="E633",
                found=" ".join(str(error).split())[:300],
                allowed=f"Spark with its own Janino, {tested_pairs()}",
                help="run maintainer in a Python process without an active Spark session",
            ) from error
