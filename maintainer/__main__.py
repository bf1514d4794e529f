"""``python -m maintainer``."""

from maintainer.cli.main import main

if __name__ == "__main__":
    main()
