"""The statements that guard the rows of a store by partition, for users who are members."""

from reservoir_cli.storage.postgres.tables import REPLICATED, SCHEMA, SPREAD

#: The roles for users of a guarded store: to read and write, or only to read.
MEMBER, READER = "reservoir_member", "reservoir_reader"
_BOTH = f"{MEMBER}, {READER}"

#: The current user's partitions. A function, because policies on a cluster cannot have sub-selects.
_OWN = f"ANY ({SCHEMA}.own_partitions())"
#: The partition of a property: everything after the first colon of its key.
_OF_PARTITION = "substr(key, strpos(key, ':') + 1)"
#: The columns of a table that a member updates.
_UPDATED = {
    "messages": "tokens, counter, secrets, edited_at",
    "conversations": "title, source, model, project, branch",
    "summaries": "digest, text, made_by, first_at, model_id, vector",
    "sources": "tool, version, size, mtime_ns, head, tail, bytes_read, state, settled",
    "ledger": "block, tokens, masked, at",
    "partition_locks": "partition",
}
#: Further conditions on the rows that a member writes to a table.
_WRITE_CHECKS = {"embeddings": f"{SCHEMA}.is_active_model(model_id, {{}}.vector_dims(vector))"}


def guard_statements(path: str, *, is_cluster: bool) -> list[str]:
    """Return the statements that restrict users to their partitions in the table ``members``.

    :param path: the ``search_path`` of the store, whose last schema is that of pgvector.
    """
    name, of_pgvector = SCHEMA, path.rpartition(", ")[2]
    # A cluster repeats the statements on each machine, with the names that this path needs.
    statements = ["SET LOCAL search_path = pg_catalog"]
    statements += [
        # Only create missing roles: a user who cannot create roles can still guard a store.
        f"DO $$ BEGIN IF to_regrole('{role}') IS NULL THEN CREATE ROLE {role} NOLOGIN; END IF; "
        "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        for role in (MEMBER, READER)
    ]
    statements += [
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {name} FROM {_BOTH}",
        f"GRANT USAGE ON SCHEMA {name} TO {_BOTH}",
        f"GRANT EXECUTE ON FUNCTION {name}.delete_rows, {name}.add_shared TO {MEMBER}",
        *(f"GRANT SELECT ON {name}.{table} TO {_BOTH}" for table in (*REPLICATED, *SPREAD)),
        *_policies("members", own_rows=f"FOR SELECT TO {_BOTH} USING (member = current_user)"),
        *_policies(
            "properties",
            shared=f"FOR SELECT TO {_BOTH} USING "
            f"(strpos(key, ':') = 0 OR {_OF_PARTITION} = {_OWN})",
        ),
    ]
    for table in SPREAD:
        check = _WRITE_CHECKS.get(table, "").format(of_pgvector)
        check = check and f" AND {check}"
        statements += [
            # Never UPDATE or DELETE of a whole table, which would allow to lock it.
            f"GRANT INSERT ON {name}.{table} TO {MEMBER}",
            *(
                f"GRANT UPDATE ({columns}) ON {name}.{table} TO {MEMBER}"
                for columns in [_UPDATED.get(table)]
                if columns
            ),
            *_policies(
                table,
                own_partitions=f"TO {_BOTH} USING (partition = {_OWN}) "
                f"WITH CHECK (partition = {_OWN}{check})",
            ),
            *(_constrain(table, f"partition = {_OWN}{check}") if is_cluster else ()),
        ]
    return statements


def _constrain(table: str, condition: str) -> list[str]:
    """Return the statements that check what a member writes by a constraint, too.

    On the machine of a partition, Citus copies the rows of ``COPY`` and ``INSERT … SELECT`` to the
    shard without row security.
    """
    name = f"{SCHEMA}.{table}"
    constraint = f"{table}_of_member"
    exempt = f"NOT row_security_active('{name}')"
    return [
        f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS {constraint}",
        f"ALTER TABLE {name} ADD CONSTRAINT {constraint} CHECK ({exempt} OR {condition}) NOT VALID",
    ]


def _policies(table: str, **policies: str) -> list[str]:
    """Return the statements that guard the rows of a table, replacing these policies."""
    full_name = f"{SCHEMA}.{table}"
    statements = [f"ALTER TABLE {full_name} ENABLE ROW LEVEL SECURITY"]
    for name, policy in policies.items():
        statements += [
            f"DROP POLICY IF EXISTS {name} ON {full_name}",
            f"CREATE POLICY {name} ON {full_name} {policy}",
        ]
    return statements
