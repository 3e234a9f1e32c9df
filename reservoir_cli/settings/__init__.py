"""Settings: their definitions, their sources, and the places of files."""
