package trace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rationhq/ration/policy"
)

// TimeForm is how a column writes instants.
type TimeForm struct {
	name        string
	digits      int   // of a number's unit below the second, in powers of ten of a microsecond
	sinceMicros int64 // what numbers count from
}

// timeForms are the forms by name, the default first.
var timeForms = []TimeForm{{name: "rfc3339", digits: -1}, {name: "seconds", digits: 6}, {name: "millis", digits: 3}, {name: "micros", digits: 0}}

// ParseTimeForm finds a form by its name: rfc3339, seconds, millis or micros.
// since is what numbers count from, 1970 unless it is said otherwise.
func ParseTimeForm(name string, since time.Time) (TimeForm, error) {
	if since.Before(time.Unix(0, 0)) {
		return TimeForm{}, errors.New("numbers count from 1970 or later")
	}
	for _, form := range timeForms {
		if form.name == name {
			form.sinceMicros = since.UnixMicro()
			return form, nil
		}
	}
	return TimeForm{}, fmt.Errorf("%q is no form of time: it is rfc3339, seconds, millis or micros", name)
}

// parse reads an instant, from 1970 to the end of the year 9999.
func (f *TimeForm) parse(text string) (int64, error) {
	if f.digits < 0 {
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return 0, fmt.Errorf("has the time %q, which is not of the form 2006-01-02T15:04:05Z", text)
		}
		return inRange(instant.UnixMicro())
	}
	whole, fraction, _ := strings.Cut(text, ".")
	fraction = fraction[:min(len(fraction), f.digits)] // finer than a microsecond is not kept
	number, err := strconv.ParseInt(whole+fraction+"000000"[:f.digits-len(fraction)], 10, 64)
	if err != nil || strings.HasPrefix(whole, "+") {
		return 0, fmt.Errorf("has the time %q, which is no number of %s", text, f.name)
	}
	if number > policy.InstantMicrosMax-f.sinceMicros {
		return 0, fmt.Errorf("has the time %q, which in %s is beyond the year 9999", text, f.name)
	}
	return inRange(number + f.sinceMicros)
}

func inRange(micros int64) (int64, error) {
	if micros < 0 || micros > policy.InstantMicrosMax {
		return 0, errors.New("has a time before 1970 or beyond the year 9999")
	}
	return micros, nil
}
