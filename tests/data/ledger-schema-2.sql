-- A ledger of schema 2, as version 0.2 was before populations were declared: iterdump() of the file,
-- and its two pragmas. Releases about north (0.96), south (0.5) and nation (0.7), limit 1.
BEGIN TRANSACTION;
CREATE TABLE ledger (settings TEXT NOT NULL, key BLOB NOT NULL, head TEXT NOT NULL);
INSERT INTO "ledger" VALUES('{"created_at": "2026-11-16T05:07:01+00:00", "delta": 1e-06, "epsilon": 1.0, "id": "5990b302f62213120f65194f04458068", "neighbours": null, "rule": "gaussian", "set_aside": 0.0}',X'7F034E94450E3DAA07C757E26C4DCDE05336D5CFA6A1AE58EB8A640C78B466BD','8aa6281b977c63b3d02cc5e8b91225b6a1f2dcec99bede405c78644076f8571e');
CREATE TABLE releases (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    reservation TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    tag TEXT NOT NULL,
    stored_at TEXT,
    completed_at TEXT
);
INSERT INTO "releases" VALUES(1,'27581feca66b33c9102b09db1775cc18','{"description": "version 0.2 before populations", "fingerprint": "c07a4c831a8498c1df2a930521d2fed95bf5e91e4206bdc729d3ed913db0c5f8", "order": null, "population": "north", "recognised_by": "cells", "reservation": "27581feca66b33c9102b09db1775cc18", "reserved_at": "2026-11-16T05:07:01+00:00", "spend": {"delta": 1e-06, "epsilon": 0.96, "eta": "633825300114114701/316912650057057350374175801344", "exponent": "633825300114114701/633825300114114700748351602688", "extra_delta": "0", "is_average": false, "mechanism": "discrete Gaussian noise", "mu_squared": "1915845654687455075/36893488147419103232", "neighbours": "replace-one", "rho": "1915845057758791519/73786976294838206464"}}','219e67f58329a3c69545a38379caa3b855ddcfc927d1292b6e3bdd1f55776b2c',NULL,'2026-11-16T05:07:01+00:00');
INSERT INTO "releases" VALUES(2,'6d022158c73ad7df3e8269c25bd7c168','{"description": "version 0.2 before populations", "fingerprint": "8d084aa9d35eca5e4fea66c1d67d9427f1f72de1fb8d7eaa8097e2c8903231a6", "order": null, "population": "south", "recognised_by": "cells", "reservation": "6d022158c73ad7df3e8269c25bd7c168", "reserved_at": "2026-11-16T05:07:01+00:00", "spend": {"delta": 1e-06, "epsilon": 0.5, "eta": "633825300114114701/316912650057057350374175801344", "exponent": "633825300114114701/633825300114114700748351602688", "extra_delta": "0", "is_average": false, "mechanism": "discrete Gaussian noise", "mu_squared": "2272638891669942133/147573952589676412928", "neighbours": "replace-one", "rho": "2272638681678125933/295147905179352825856"}}','7b9b2ccd1f8ca70ddef56bc5adcaf8818d7e5297f857df8e118fbcef9169ee75',NULL,'2026-11-16T05:07:01+00:00');
INSERT INTO "releases" VALUES(3,'22c5f89ad24c8e84b5d69a7c1831eb54','{"description": "version 0.2 before populations", "fingerprint": "6597b95a1af01838911a647976d955f8daec07666ea95628fa42b92d155d3788", "order": null, "population": "nation", "recognised_by": "cells", "reservation": "22c5f89ad24c8e84b5d69a7c1831eb54", "reserved_at": "2026-11-16T05:07:01+00:00", "spend": {"delta": 1e-06, "epsilon": 0.7, "eta": "633825300114114701/316912650057057350374175801344", "exponent": "633825300114114701/633825300114114700748351602688", "extra_delta": "0", "is_average": false, "mechanism": "discrete Gaussian noise", "mu_squared": "2129477349385217553/73786976294838206464", "neighbours": "replace-one", "rho": "2129476980647543993/147573952589676412928"}}','8aa6281b977c63b3d02cc5e8b91225b6a1f2dcec99bede405c78644076f8571e',NULL,NULL);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('releases',3);
COMMIT;
PRAGMA application_id = 1145656131;
PRAGMA user_version = 2;
