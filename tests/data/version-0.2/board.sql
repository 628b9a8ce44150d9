BEGIN TRANSACTION;
CREATE TABLE declarations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body TEXT NOT NULL,
    tag TEXT NOT NULL
);
INSERT INTO "declarations" VALUES(1,'{"after": 0, "approver": "ada", "declared_at": "2026-11-16T15:00:52+00:00", "public_key": "ed25519:c1871ca2da54e2f7d864e37e1590a7e7fa9f37c97e07f72cb9c8a7193da7c0da", "request": null, "retires": false}','a9e000a59fa9db69ce37c5b1edb79e727a22ea736605cdd879ae49d255804f6d');
INSERT INTO "declarations" VALUES(2,'{"after": 0, "approver": "bob", "declared_at": "2026-11-16T15:00:52+00:00", "public_key": "ed25519:54f6757dc4f7ac7dd8a0e3c663345192f331e6a9b34d2c6e4ca2463f45fc9b91", "request": null, "retires": false}','0c2cf27a4c538117ad1f97188f41d28320806a1b56c0bc5242b2d4eefc7202cb');
CREATE TABLE ledger (settings TEXT NOT NULL, key BLOB NOT NULL, head TEXT NOT NULL, declared TEXT);
INSERT INTO "ledger" VALUES('{"approvals": 2, "created_at": "2026-11-16T15:00:52+00:00", "delta": 1e-05, "epsilon": 2.0, "id": "048d8657815947925d9789e945c4e79a", "neighbours": null, "remember_persons": false, "rule": "gaussian", "set_aside": 0.0}',X'3411CC5DDB50FF39E32EA5B43F6EECA11E4CBF6613BD589082760BE11881B1B2','266eda2656dd447192e9a7101406818663f6ec714672469d865aca08a211008e','0c2cf27a4c538117ad1f97188f41d28320806a1b56c0bc5242b2d4eefc7202cb');
CREATE TABLE persons (release INTEGER PRIMARY KEY, digests BLOB NOT NULL);
CREATE TABLE releases (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    reservation TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    tag TEXT NOT NULL,
    stored_at TEXT,
    completed_at TEXT
);
INSERT INTO "releases" VALUES(1,'a41556fcc14fc3bcaa2b861b63c321d8','{"approved_by": [{"key": "3e74b28e57b4fe2dce44aa1532390f50", "name": "ada"}, {"key": "99e5dc56aec60b14a387683bc953a4b2", "name": "bob"}], "declared": 2, "description": "pairs, epsilon 0.2, delta 1e-06", "fingerprint": "424b13c55011114ab29f2bc1d008ff6302816e1591b97b5d1f84285ebafde8c1", "ids": null, "order": {"about": {"approval": {"approvers": [{"key": "3e74b28e57b4fe2dce44aa1532390f50", "name": "ada"}, {"key": "99e5dc56aec60b14a387683bc953a4b2", "name": "bob"}], "request": "2ebc77eb859ae827ad2bc2449aba1e60", "sha256": "743c794630f3d38d5ae68a5f19fb0359c1cf437572a497735306a00004a890d5"}}, "choice": "pairs: named by the steward", "class": "DensePairs", "conditions": [], "design": "unknown", "forms": [], "is_fixed": false, "items": ["a", "b", "c", "d"], "kind": "answers", "laws": {"right_wrong": ["gaussian", "6875/128"]}, "lowest": 0, "max_answers": 4, "mechanism": {"family": "gaussian", "name": "pairs"}, "model": "partial-credit", "name": "pairs", "persons": 60, "settings": {}, "steps": [1, 1, 1, 1], "unit": null}, "persons": null, "population": "everyone", "recognised_by": "cells", "request": {"request": {"about": {}, "date": "2026-11-16T15:00:52+00:00", "delta": "0.000001", "design": "unknown", "epsilon": "0.2", "format": "discreet request 1", "forms": [], "items": ["a", "b", "c", "d"], "kind": "answers", "ledger": "048d8657815947925d9789e945c4e79a", "ledger_file": "board.db", "lowest": 0, "max_answers": 4, "mechanism": "pairs", "model": "rasch", "neighbours": "replace-one", "nonce": "2ebc77eb859ae827ad2bc2449aba1e60", "persons": null, "population": "everyone", "purpose": "release", "reading": {}, "steps": [1, 1, 1, 1]}, "signatures": [{"public_key": "ed25519:c1871ca2da54e2f7d864e37e1590a7e7fa9f37c97e07f72cb9c8a7193da7c0da", "signature": "9f5b22a79c9b8d6bf57e21a612e066066193e4b49fe0499fd6c43ef5450bee564ff8a901a2ba7fd5d2eec151db5226cd2934b3bed0c7955cc736863211583004"}, {"public_key": "ed25519:54f6757dc4f7ac7dd8a0e3c663345192f331e6a9b34d2c6e4ca2463f45fc9b91", "signature": "44f24863d2873fccecc5e4dd8fe55323f6fef2fbc65fd27fa0885221e24b053ab38966844418e4509a75839e3ea4772649eab7558646188568ccbc1dbabd3e0e"}]}, "reservation": "a41556fcc14fc3bcaa2b861b63c321d8", "reserved_at": "2026-11-16T15:00:52+00:00", "spend": {"delta": 1e-06, "epsilon": 0.2, "eta": "633825300114114701/316912650057057350374175801344", "exponent": "633825300114114701/633825300114114700748351602688", "extra_delta": "0", "is_average": false, "mechanism": "pairs", "mu_squared": "1637051905666972057/590295810358705651712", "neighbours": "replace-one", "rho": "1636945506493064827/1180591620717411303424"}}','266eda2656dd447192e9a7101406818663f6ec714672469d865aca08a211008e',NULL,NULL);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('declarations',2);
INSERT INTO "sqlite_sequence" VALUES('releases',1);
COMMIT;
PRAGMA application_id = 1145656131;
PRAGMA user_version = 3;
