"""The tables of a store: one module for each table, or for what concerns all of them."""
