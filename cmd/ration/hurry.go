package main

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// errHurried is why what was asked is not answered.
var errHurried = errors.New("a second signal: ended without waiting for answers")

// secondSignal closes its channel at the second signal, which does not end the
// process meanwhile: what was started has to be stopped. The third one does,
// and every one after release.
func secondSignal() (second <-chan struct{}, release func()) {
	signals := make(chan os.Signal, 2) // both may come at once
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	came, released := make(chan struct{}), make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		for range 2 {
			select {
			case <-signals:
			case <-released:
				return
			}
		}
		close(came)
	}()
	return came, sync.OnceFunc(func() { close(released) })
}
