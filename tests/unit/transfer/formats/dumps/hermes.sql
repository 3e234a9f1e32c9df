-- Written by hand after the schema of Hermes Agent.
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO "schema_version" VALUES(23);
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, title TEXT, cwd TEXT, git_branch TEXT);
INSERT INTO "sessions" VALUES('h-1','telegram','7','quill-2',NULL,'Be kind.',NULL,1780300800.5,NULL,'Ink','/home/ann/press','main');
INSERT INTO "sessions" VALUES('h-2','cli',NULL,'quill-2',NULL,NULL,'h-1',1780300900.5,NULL,NULL,NULL,NULL);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, reasoning TEXT);
INSERT INTO "messages" VALUES(1,'h-1','user','Which ink for copper?',NULL,NULL,NULL,1780300860.25,NULL);
INSERT INTO "messages" VALUES(2,'h-1','assistant',NULL,NULL,'[{"id": "hc1", "type": "function", "function": {"name": "search", "arguments": "{\"q\": \"ink\"}"}}]',NULL,1780300862.0,'Look in the catalogue.');
INSERT INTO "messages" VALUES(3,'h-1','tool','etching ink','hc1',NULL,'search',1780300863.0,NULL);
INSERT INTO "messages" VALUES(4,'h-1','assistant','Etching ink.',NULL,NULL,NULL,1780300865.0,NULL);
INSERT INTO "messages" VALUES(5,'h-2','user','Find a shop.',NULL,NULL,NULL,1780300900.0,NULL);
INSERT INTO "messages" VALUES(6,'h-2','printer','x',NULL,NULL,NULL,1780300901.0,NULL);
