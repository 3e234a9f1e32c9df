"""The statements that guard the rows of a store by partition, for users who are members."""

from reservoir_cli.storage import properties
from reservoir_cli.storage.postgres.tables import EVERYWHERE, SCHEMA, SPREAD

#: The roles for users of a guarded store: to read and write, or only to read.
MEMBER, READER = "reservoir_member", "reservoir_reader"
_BOTH = f"{MEMBER}, {READER}"

#: The current user's partitions. A function, because policies on a cluster cannot have sub-selects.
_OWN = f"ANY ({SCHEMA}.own_partitions())"
#: The properties that a member may insert if they are missing; only the owner can change them.
_FIRST = (
    f"key IN ('{properties.MODEL_ID}', '{properties.MODEL_NAME}') "
    f"OR (key = '{properties.FORGOTTEN_KEY}' AND value ~ '^[0-9a-f]{{64}}$') "
    f"OR (key = '{properties.DIMENSIONS}' AND value ~ '^[1-9][0-9]{{0,4}}$')"
)
#: The partition of a property: everything after the first colon of its key.
_OF_PARTITION = "substr(key, strpos(key, ':') + 1)"
#: Further conditions on the rows that a member writes to a table.
_WRITE_CHECKS = {"embeddings": f"{SCHEMA}.is_active_model(model_id, vector_dims(vector))"}


def guard_statements() -> list[str]:
    """Return the statements that restrict users to their partitions in the table ``members``."""
    name = SCHEMA
    statements = [
        # Only create missing roles: a user who cannot create roles can still guard a store.
        f"DO $$ BEGIN IF to_regrole('{role}') IS NULL THEN CREATE ROLE {role} NOLOGIN; END IF; "
        "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        for role in (MEMBER, READER)
    ]
    statements += [
        f"GRANT USAGE ON SCHEMA {name} TO {_BOTH}",
        *(f"GRANT SELECT ON {name}.{table} TO {_BOTH}" for table in (*EVERYWHERE, *SPREAD)),
        f"GRANT INSERT ON {name}.tombstones TO {MEMBER}",
        *_policies("members", own_rows=f"FOR SELECT TO {_BOTH} USING (member = current_user)"),
        f"GRANT INSERT ON {name}.properties TO {MEMBER}",
        *_policies(
            "properties",
            shared=f"FOR SELECT TO {_BOTH} USING "
            f"(strpos(key, ':') = 0 OR {_OF_PARTITION} = {_OWN})",
            first=f"FOR INSERT TO {MEMBER} WITH CHECK ({_FIRST})",
        ),
    ]
    for table in SPREAD:
        check = f" AND {_WRITE_CHECKS[table]}" if table in _WRITE_CHECKS else ""
        statements += [
            f"GRANT INSERT, UPDATE, DELETE ON {name}.{table} TO {MEMBER}",
            *_policies(
                table,
                own_partitions=f"TO {_BOTH} USING (partition = {_OWN}) "
                f"WITH CHECK (partition = {_OWN}{check})",
            ),
        ]
    return statements


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
