-- A ledger as version 0.1 wrote it (schema 1): iterdump() of the file, and its two pragmas.
-- Release 1 is of the answers A of tests/test_ledger_migration.py, 2 and 3 are of its answers B.
BEGIN TRANSACTION;
CREATE TABLE ledger (settings TEXT NOT NULL, key BLOB NOT NULL, head TEXT NOT NULL);
INSERT INTO "ledger" VALUES('{"created_at": "2026-11-15T19:43:04+00:00", "delta": 1e-06, "epsilon": 1.0, "id": "90fc7c554cb8b0ca22e66bd2828c80db", "neighbours": null, "rule": "gaussian", "set_aside": 0.0}',X'436BD3EDE784F1ACFB521F3C947757B2E02D6539887D63DC8F2B020AC4408415','b5e75ea2a257f34fa2f183c4234c9068370b3f5da06ddfbb93555bb67927a627');
CREATE TABLE releases (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    reservation TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    tag TEXT NOT NULL,
    completed_at TEXT
);
INSERT INTO "releases" VALUES(1,'18370b2106169356362c2de807cd1a10','{"description": "pairs, epsilon 0.75, delta 1e-06", "fingerprint": "74a2508c255cc030a2e13347776467af9eadb18a6d6b45deca594d501e4f70b3", "population": "everyone", "reservation": "18370b2106169356362c2de807cd1a10", "reserved_at": "2026-11-15T19:43:04+00:00", "spend": {"delta": 1e-06, "epsilon": 0.75, "eta": "633825300114114701/316912650057057350374175801344", "exponent": "633825300114114701/633825300114114700748351602688", "extra_delta": "0", "mechanism": "discrete Gaussian noise", "mu_squared": "302667355402259959/9223372036854775808", "neighbours": "replace-one", "rho": "1210669183238492605/73786976294838206464"}}','76c2f525b61f454c351cdd5eb881b1080c9ab4316a994e6cc79d9807da8110d1','2026-11-15T19:43:04+00:00');
INSERT INTO "releases" VALUES(2,'4c19a1456e1f9168a7c4a4fc672a714c','{"description": "pairs, epsilon 0.5, delta 1e-06", "fingerprint": "93487a0b1ff6ce16f1aa4a7446ca57a06e1b52bab267997c3bd86c12187acc0b", "population": "grade 8", "reservation": "4c19a1456e1f9168a7c4a4fc672a714c", "reserved_at": "2026-11-15T19:43:04+00:00", "spend": {"delta": 1e-06, "epsilon": 0.5, "eta": "633825300114114701/316912650057057350374175801344", "exponent": "633825300114114701/633825300114114700748351602688", "extra_delta": "0", "mechanism": "discrete Gaussian noise", "mu_squared": "2272638891669942133/147573952589676412928", "neighbours": "replace-one", "rho": "2272638681678125933/295147905179352825856"}}','26f398b193f5deb1e8ef190e821945b8f78b5412b414b6be9cfce6b1ca03c2c8','2026-11-15T19:43:04+00:00');
INSERT INTO "releases" VALUES(3,'633c02c3565f4d14f2b61ceb1703ddc4','{"description": "pairs, epsilon 0.25, delta 1e-06", "fingerprint": "93487a0b1ff6ce16f1aa4a7446ca57a06e1b52bab267997c3bd86c12187acc0b", "population": "grade 8", "reservation": "633c02c3565f4d14f2b61ceb1703ddc4", "reserved_at": "2026-11-15T19:43:04+00:00", "spend": {"delta": 1e-06, "epsilon": 0.25, "eta": "633825300114114701/316912650057057350374175801344", "exponent": "633825300114114701/633825300114114700748351602688", "extra_delta": "0", "mechanism": "discrete Gaussian noise", "mu_squared": "1242556547696265027/295147905179352825856", "neighbours": "replace-one", "rho": "621278258154847471/295147905179352825856"}}','b5e75ea2a257f34fa2f183c4234c9068370b3f5da06ddfbb93555bb67927a627',NULL);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('releases',3);
COMMIT;
PRAGMA application_id = 1145656131;
PRAGMA user_version = 1;
