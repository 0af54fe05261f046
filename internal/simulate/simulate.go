// Package simulate tries policies on past traffic, in the traffic's own time
// and without a database: whom they would have let in, whom they would have
// denied, and for how long.
//
// It counts in the integers of the stored functions, as a million requests
// should take seconds; tests hold it to internal/memstore, request by request.
package simulate

import (
	"errors"
	"io"

	"github.com/rationhq/ration/internal/trace"
)

const microsPerSecond = 1_000_000

// Simulation tries each of its candidates by itself on the same requests.
type Simulation struct {
	trials               []*trial
	requests             int64
	behind               int64 // requests with an earlier time than one before them
	fromMicros, toMicros int64
}

// New makes a simulation of candidates whose names differ. A candidate of more
// than keysMax keys is an error of [Simulation.Run]: 300 bytes or so are kept
// of each, and of logs every charge that counts.
func New(candidates []Candidate, keysMax int) (*Simulation, error) {
	s := new(Simulation)
	for _, candidate := range candidates {
		trial, err := newTrial(candidate, keysMax)
		if err != nil {
			return nil, err
		}
		s.trials = append(s.trials, trial)
	}
	return s, nil
}

// Run tries every request of a trace, in its order.
func (s *Simulation) Run(from *trace.Reader) error {
	for {
		record, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.try(record); err != nil {
			return err
		}
	}
}

// try asks every candidate. A request out of order is asked at its own time,
// as by a clock that stepped back.
func (s *Simulation) try(record *trace.Record) error {
	at := record.AtMicros
	if s.requests == 0 {
		s.fromMicros, s.toMicros = at, at
	}
	if at < s.toMicros {
		s.behind++
	}
	s.requests++
	s.fromMicros, s.toMicros = min(s.fromMicros, at), max(s.toMicros, at)
	for _, trial := range s.trials {
		if err := trial.ask(&record.Request, at, s.toMicros/microsPerSecond); err != nil {
			return err
		}
	}
	return nil
}
