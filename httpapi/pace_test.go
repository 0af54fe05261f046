package httpapi

import (
	"strconv"
	"testing"
	"time"
)

func TestChangesArePaced(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)
	for n := range changesBurst {
		if wait := p.take("ann", now); wait != 0 {
			t.Fatalf("change %d waits %s", n+1, wait)
		}
	}
	const each = time.Second / changesPerSecond
	for range 3 { // who is refused pays nothing for it
		if wait := p.take("ann", now); wait != each {
			t.Errorf("one too many waits %s, want %s", wait, each)
		}
	}
	if wait := p.take("bob", now); wait != 0 {
		t.Errorf("another operator waits %s", wait)
	}
	if wait := p.take("ann", now.Add(each)); wait != 0 {
		t.Errorf("as long as it was told, it waits %s", wait)
	}
}

func TestOperatorsAreForgottenWhenThatChangesNothing(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)
	for n := range changersMax {
		p.take(strconv.Itoa(n), now)
	}
	if wait := p.take("new", now); wait == 0 || len(p.by) != changersMax {
		t.Errorf("one more than can be remembered waits %s; %d are", wait, len(p.by))
	}
	later := now.Add(time.Second)
	p.take("0", later)
	if wait := p.take("new", later); wait != 0 || len(p.by) != 2 {
		t.Errorf("when others have earned all back it waits %s; %d are remembered", wait, len(p.by))
	}
}
