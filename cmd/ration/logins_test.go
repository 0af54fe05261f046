package main

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// attempts is the naive reading of one exact limit: the seconds of the
// attempts that were let in.
type attempts []int64

// wait gives the seconds until fewer than limit of them are within the window.
func (a attempts) wait(now, limit int64) int64 {
	const window = 900
	var within attempts
	for _, at := range a {
		if at > now-window {
			within = append(within, at)
		}
	}
	if int64(len(within)) < limit {
		return 0
	}
	return within[int64(len(within))-limit] + window - now
}

// Every sign-in attempt at a machine under password guessing, at its own time,
// is asked of what `ration dev` serves: its example policies deny those that a
// naive reading of three exact limits denies, for as long.
func TestLoginsThroughHTTP(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	clock := newClock(t, db, time.Date(2026, time.November, 30, 6, 0, 0, 0, time.UTC))
	i := start(t, append(patient(), "RATION_DATABASE_URL="+db.OwnerURL()), "dev")
	file, err := os.Open("../../internal/storetest/testdata/logins.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]attempts{}
	denied, now := 0, int64(0)
	for number, line := range lines[1:] { // offset_s, ip, target_account, result
		at, err := strconv.ParseInt(line[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		clock.forward(time.Duration(at-now) * time.Second)
		now = at
		ip, account := line[1], line[2]
		limits := map[string]int64{ip + " " + account: 5, ip: 20, account: 50}
		wait := int64(0)
		for key, limit := range limits {
			wait = max(wait, made[key].wait(now, limit))
		}
		if number%2 == 1 {
			account = strings.ToUpper(account) + " " // the same to the limits
		}
		got := i.mustAsk(t, fmt.Sprintf(`{"ip":%q,"targetAccount":%q,"operation":"auth.login"}`, ip, account))
		if got.Allowed != (wait == 0) || got.RetryAfterMillis == nil || *got.RetryAfterMillis != 1000*wait {
			t.Fatalf("attempt %d, at %d s: %d %+v, want a wait of %d s", number+1, now, got.Status, got, wait)
		}
		if got.Status == http.StatusTooManyRequests {
			denied++
			continue
		}
		for key := range limits {
			made[key] = append(made[key], now)
		}
	}
	if denied == 0 {
		t.Error("nothing was denied: nothing was tested")
	}
	t.Logf("%d of %d attempts were denied", denied, len(lines)-1)
}
