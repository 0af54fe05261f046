package simulate

import (
	"fmt"
	"strconv"
	"time"
)

// ticksMax is how many ticks an axis of time has at most: each has room for
// its name.
const ticksMax = 10

const daySeconds = 24 * 3600

// scale is the axis of a count: from 0 to top in steps.
type scale struct{ top, step int64 }

// scaleTo gives a scale that most fits on, of at most five round steps.
func scaleTo(most int64) scale {
	step := int64(1)
	for factors := []int64{2, 5, 10}; most > 5*step; {
		decade := step
		for _, factor := range factors {
			if step = decade * factor; most <= 5*step {
				break
			}
		}
	}
	return scale{top: (most + step - 1) / step * step, step: step}
}

// tickSeconds gives the distance of the ticks on an axis of so many seconds.
func tickSeconds(seconds int64) int64 {
	for _, step := range []int64{
		1, 5, 10, 30, 60, 300, 600, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, daySeconds, 2 * daySeconds, 7 * daySeconds,
	} {
		if seconds <= step*ticksMax {
			return step
		}
	}
	return (seconds/ticksMax/daySeconds + 1) * daySeconds
}

// tickName names a second since 1970: the date where a day begins, else the
// time of day.
func tickName(second, step int64) string {
	at := time.Unix(second, 0).UTC()
	switch {
	case second%daySeconds == 0:
		return at.Format("2 Jan 2006")
	case step < 60:
		return at.Format("15:04:05")
	default:
		return at.Format("15:04")
	}
}

// widthName names the width of a bin: hour, 15 minutes.
func widthName(seconds int64) string {
	for _, size := range []struct {
		seconds int64
		name    string
	}{{7 * daySeconds, "week"}, {daySeconds, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}} {
		switch {
		case seconds == size.seconds:
			return size.name
		case seconds > size.seconds && seconds%size.seconds == 0:
			return fmt.Sprintf("%d %ss", seconds/size.seconds, size.name)
		}
	}
	return "" // not reached: a second divides all
}

// Grouped writes a whole number of at least 0 with a comma before each three
// digits.
func Grouped(number int64) string {
	text := strconv.FormatInt(number, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Percent writes a share of 0 to 1. What is not nothing does not read as it.
func Percent(share float64) string {
	if 0 < share && share < 0.0005 {
		return "< 0.1%"
	}
	return fmt.Sprintf("%.1f%%", 100*share)
}
