"""Files and folders by URI: local disks through the operating system, everything else through Hadoop."""
