package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// operationConnsMax bounds the pool for outcomes, settlements and slots: a
// flood of them keeps no policy change waiting, and no lane.
const operationConnsMax = 4

// What found a row held is tried again after heldPause, then after twice that,
// up to heldPauseMax.
const (
	heldPause    = 5 * time.Millisecond
	heldPauseMax = 40 * time.Millisecond
)

// operate runs work about an operation, a slot or versions on a connection of
// the pool for those, connecting included, within the bound of a call; there
// is no transaction around its statements. What found a row held has done
// nothing: it is tried again, and keeps no connection meanwhile. Tries begin
// in the first half of the bound, so that the server ends one that waits, and
// not the client, who would not know what came of it. The errors are
// [*policy.Error].
func (s *Store) operate(ctx context.Context, doing string, work func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.callTimeout)
	defer cancel()
	tries, cancel := context.WithTimeout(ctx, s.callTimeout/2)
	defer cancel()
	err := s.tryOperate(ctx, tries, work)
	for pause := heldPause; isHeld(err) && rest(tries, pause); pause = min(2*pause, heldPauseMax) {
		err = s.tryOperate(ctx, tries, work)
	}
	return problem(doing, err)
}

// tryOperate runs work once, if a connection is free before tries ends.
func (s *Store) tryOperate(ctx, tries context.Context, work func(context.Context, *pgx.Conn) error) error {
	conn, err := s.operations.Acquire(tries)
	switch {
	case err != nil && tries.Err() != nil:
		return errNoConn
	case err != nil:
		return err
	}
	defer conn.Release()
	return work(ctx, conn.Conn())
}
