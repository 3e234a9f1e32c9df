"""The statements that guard the rows of a store by partition, for users who are members."""

from reservoir_cli.storage import properties
from reservoir_cli.storage.postgres.tables import EVERYWHERE, SCHEMA, SPREAD

#: The roles that a user of a guarded store is given, to read and write, or to read.
MEMBER, READER = "reservoir_member", "reservoir_reader"
_BOTH = f"{MEMBER}, {READER}"

#: The partitions of who asks. A function, not a sub-select: no policy of a cluster may have one.
_OWN = f"ANY ({SCHEMA}.own_partitions())"
#: What a member may be the first to write, and only so, and nobody but the owner changes.
_FIRST = (
    f"key IN ('{properties.MODEL_ID}', '{properties.MODEL_NAME}') "
    f"OR (key = '{properties.FORGOTTEN_KEY}' AND value ~ '^[0-9a-f]{{64}}$') "
    f"OR (key = '{properties.DIMENSIONS}' AND value ~ '^[1-9][0-9]{{0,4}}$')"
)
#: Of what partition a property is; everything behind its first colon.
_OF_PARTITION = "substr(key, strpos(key, ':') + 1)"
#: What holds of the rows of a table beside their partition when a member writes them.
_WRITTEN = {
    "embeddings": f"{SCHEMA}.is_active_model(model_id, vector_dims(vector))",
}


def guarding() -> list[str]:
    """Return the statements that let a user see only the partitions ``members`` names for them."""
    name = SCHEMA
    found = [
        # Who may not make roles may still guard a store when they are there.
        f"DO $$ BEGIN IF to_regrole('{role}') IS NULL THEN CREATE ROLE {role} NOLOGIN; END IF; "
        "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        for role in (MEMBER, READER)
    ]
    found += [
        f"GRANT USAGE ON SCHEMA {name} TO {_BOTH}",
        *(f"GRANT SELECT ON {name}.{table} TO {_BOTH}" for table in (*EVERYWHERE, *SPREAD)),
        f"GRANT INSERT ON {name}.forgotten TO {MEMBER}",
        *_policies("members", own_rows=f"FOR SELECT TO {_BOTH} USING (member = current_user)"),
        # Earlier versions granted more.
        f"REVOKE UPDATE, DELETE ON {name}.properties FROM {MEMBER}",
        f"DROP POLICY IF EXISTS own ON {name}.properties",
        f"GRANT INSERT ON {name}.properties TO {MEMBER}",
        *_policies(
            "properties",
            shared=f"FOR SELECT TO {_BOTH} USING "
            f"(strpos(key, ':') = 0 OR {_OF_PARTITION} = {_OWN})",
            first=f"FOR INSERT TO {MEMBER} WITH CHECK ({_FIRST})",
        ),
    ]
    for table in SPREAD:
        written = f" AND {_WRITTEN[table]}" if table in _WRITTEN else ""
        found += [
            f"GRANT INSERT, UPDATE, DELETE ON {name}.{table} TO {MEMBER}",
            *_policies(
                table,
                own_partitions=f"TO {_BOTH} USING (partition = {_OWN}) "
                f"WITH CHECK (partition = {_OWN}{written})",
            ),
        ]
    return found


def _policies(table: str, **policies: str) -> list[str]:
    """Guard the rows of a table by policies, in place of those of the same names."""
    place = f"{SCHEMA}.{table}"
    found = [f"ALTER TABLE {place} ENABLE ROW LEVEL SECURITY"]
    for name, policy in policies.items():
        found += [
            f"DROP POLICY IF EXISTS {name} ON {place}",
            f"CREATE POLICY {name} ON {place} {policy}",
        ]
    return found
