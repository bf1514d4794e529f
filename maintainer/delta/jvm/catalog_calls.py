"""Ask catalogs where a name leads: Spark's session catalog (in memory or Hive's), and others that a session has."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.delta.jvm.gateway import Gateway, required
from maintainer.delta.jvm.sessions import JavaObject

SESSION_CATALOG = "spark_catalog"
UNITY_CLASS = "io.unitycatalog.spark.UCSingleCatalog"
_MULTIPART = "org.apache.spark.sql.connector.catalog.CatalogV2Implicits$"

REQUIRED = required(
    {
        "org.apache.spark.sql.internal.SessionState": "catalog/0 catalogManager/0 sqlParser/0",
        "org.apache.spark.sql.catalyst.parser.ParserInterface": "parseMultipartIdentifier/1 parseTableIdentifier/1",
        "org.apache.spark.sql.catalyst.TableIdentifier": "table/0",
        "org.apache.spark.sql.catalyst.catalog.SessionCatalog": "tableExists/1 getTableMetadata/1 listDatabases/0 "
        "listTables/3 getTablesByName/1",
        "org.apache.spark.sql.catalyst.catalog.CatalogTable": "identifier/0 provider/0 tableType/0 location/0",
        "org.apache.spark.sql.catalyst.catalog.CatalogTableType": "name/0",
        "org.apache.spark.sql.connector.catalog.CatalogManager": "isCatalogRegistered/1 currentCatalog/0 catalog/1",
        _MULTIPART: "MultipartIdentifierHelper/1",
        f"{_MULTIPART}MultipartIdentifierHelper": "asIdentifier/0",
    }
)
"""Private methods of Spark that this module calls."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What a catalog says of a table or view.

    ``location`` is a URI, empty for a view. ``provider`` is as the catalog spells it, empty where it has none.
    ``managed_as`` is the catalog's word for a table whose files are its own, and so what may be done to them.
    """

    name: str
    location: str
    provider: str
    is_view: bool
    managed_as: str = ""

    @property
    def is_delta(self) -> bool:
        """Whether it is a table of Delta."""
        return not self.is_view and self.provider.lower() == "delta"


class CatalogCalls(Gateway):
    """Looks at catalogs; nothing is made or changed in them."""

    def catalog_entry(self, name: str) -> CatalogEntry | None:
        """Return what the catalog says of a name; None if there is no such table.

        As in SQL the first part names a catalog where one is registered under it; else the current one is asked.
        """
        state = self._session.sessionState()
        parts, manager = state.sqlParser().parseMultipartIdentifier(name), state.catalogManager()
        if parts.size() > 1 and manager.isCatalogRegistered(parts.head()):
            catalog, parts = manager.catalog(parts.head()), parts.tail()
        else:
            catalog = manager.currentCatalog()
        if str(catalog.name()) == SESSION_CATALOG:
            session_catalog, identifier = state.catalog(), state.sqlParser().parseTableIdentifier(name)
            if not session_catalog.tableExists(identifier):
                return None
            return _session_entry(name, session_catalog.getTableMetadata(identifier))
        identifier = self._scala_object(_MULTIPART).MultipartIdentifierHelper(parts).asIdentifier()
        if not catalog.tableExists(identifier):
            return None
        properties = catalog.loadTable(identifier).properties()
        location, provider, is_external = (properties.get(key) or "" for key in ("location", "provider", "external"))
        # Any other catalog's managed table is one whose folder a DROP removes.
        is_own = str(catalog.getClass().getName()) == UNITY_CLASS and str(is_external) != "true"
        return CatalogEntry(name, str(location), str(provider), is_view=False, managed_as="MANAGED" if is_own else "")

    def session_databases(self) -> list[str]:
        databases = self._session.sessionState().catalog().listDatabases()
        return sorted(str(databases.apply(place)) for place in range(databases.size()))

    def session_tables(self, database: str) -> list[CatalogEntry]:
        """Return the tables and views of a database of the session catalog, by one question to it.

        Args:
            database: Its name, without back-ticks.
        """
        catalog = self._session.sessionState().catalog()
        tables = catalog.getTablesByName(catalog.listTables(database, "*", False))
        entries = []
        for place in range(tables.size()):
            table = tables.apply(place)
            entries.append(_session_entry(str(table.identifier().table()), table))
        return entries


def _session_entry(name: str, table: JavaObject) -> CatalogEntry:
    provider, is_view = table.provider(), str(table.tableType().name()) == "VIEW"
    return CatalogEntry(
        name=name,
        location="" if is_view else str(table.location().toString()),
        provider=str(provider.get()) if provider.isDefined() else "",
        is_view=is_view,
    )
