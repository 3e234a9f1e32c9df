"""The store on a PostgreSQL server with pgvector, for many machines and many users.

It gives the same answers as the store in a file. All tables can be spread over machines by
partition: keys begin with it, and ids are made here and not by the server.
"""
