BEGIN TRANSACTION;
CREATE TABLE declarations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body TEXT NOT NULL,
    tag TEXT NOT NULL
);
CREATE TABLE ledger (settings TEXT NOT NULL, key BLOB NOT NULL, head TEXT NOT NULL, declared TEXT);
INSERT INTO "ledger" VALUES('{"approvals": 1, "created_at": "2026-11-16T15:00:52+00:00", "delta": 1e-05, "epsilon": 1.0, "id": "9cc14c9b11eb14e319d56d8d7f555c34", "neighbours": null, "remember_persons": false, "rule": "gaussian", "set_aside": 0.0}',X'FF3B091A444ECA0EB0D4AE93A6F5F09B393D7FEE128D30F91F7CE698F9BF87F5','7a3898deb2acfd720c6bc05b64e9c84db26f318730e8079d79f13f680390ff46','26fcc581ddda39ceae4f5d6ca2727e623f61170517b2fd54638f28a42cab7728');
CREATE TABLE persons (release INTEGER PRIMARY KEY, digests BLOB NOT NULL);
CREATE TABLE releases (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    reservation TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    tag TEXT NOT NULL,
    stored_at TEXT,
    completed_at TEXT
);
DELETE FROM "sqlite_sequence";
COMMIT;
PRAGMA application_id = 1145656131;
PRAGMA user_version = 3;
