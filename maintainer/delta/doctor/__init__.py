"""What ``maintainer doctor`` checks: Python, Java, JARs, a session, storage. Each finding names its fix."""
