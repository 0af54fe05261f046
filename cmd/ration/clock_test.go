package main

import (
	"testing"
	"time"

	"github.com/rationhq/ration/internal/dbtest"
)

// clock is the clock of one database, whose hands its test moves. Whatever
// runs in front of that database is the real thing and knows nothing of it:
// every stored function reads ration.clock_v1, which tells the hands there.
type clock struct {
	t   *testing.T
	db  *dbtest.DB
	now time.Time
}

// newClock stops the clock of a database at an instant.
func newClock(t *testing.T, db *dbtest.DB, at time.Time) *clock {
	t.Helper()
	_, err := db.Owner().Exec(t.Context(), `
		CREATE TABLE ration.hands (now bigint NOT NULL);
		INSERT INTO ration.hands VALUES (0);
		GRANT SELECT ON ration.hands TO PUBLIC;
		CREATE OR REPLACE FUNCTION ration.clock_v1(p_now bigint DEFAULT NULL)
		RETURNS bigint LANGUAGE plpgsql VOLATILE
		AS $$ BEGIN RETURN (SELECT h.now FROM ration.hands AS h); END $$`)
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{t: t, db: db, now: at}
	c.forward(0)
	return c
}

// forward moves the hands.
func (c *clock) forward(by time.Duration) {
	c.t.Helper()
	c.now = c.now.Add(by)
	if _, err := c.db.Owner().Exec(c.t.Context(), `UPDATE ration.hands SET now = $1`, c.now.UnixMicro()); err != nil {
		c.t.Fatal(err)
	}
}
