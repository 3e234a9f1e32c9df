"""Settings: their definitions, their sources, and the paths of files."""
