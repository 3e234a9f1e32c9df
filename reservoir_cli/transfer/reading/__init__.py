"""Read the files and databases of other programs: what their formats share."""
