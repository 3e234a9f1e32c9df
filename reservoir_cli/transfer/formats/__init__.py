"""Read the histories of other tools, one module per format.

``registry`` lists them. An importer yields records and does not know the store;
``store_records`` stores them. A bad record is skipped with its position and never ends the run.
"""
