"""Check, repair, back up and calibrate a store, and manage its database."""
