import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A second catalog of a session, as Unity's is: it has the tables of the session catalog under a name of its own. */
public class OtherCatalog extends DelegatingCatalogExtension {
    private String name;

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        setDelegateCatalog(
            org.apache.spark.sql.classic.SparkSession.active().sessionState().catalogManager().v2SessionCatalog());
    }

    @Override
    public String name() {
        return name;
    }
}
