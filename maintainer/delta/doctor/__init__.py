"""The checks of ``maintainer doctor``: Python, Java, JARs, a session, storage. Each problem comes with its fix."""
