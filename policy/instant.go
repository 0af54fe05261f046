package policy

// InstantMicrosMax is the last instant that RFC 3339 can write.
const InstantMicrosMax int64 = 253_402_300_799_999_000 // 9999-12-31T23:59:59.999Z

// InstantAfter is the instant at which a wait ends that begins at atMicros, at
// most [InstantMicrosMax]: a deep debt at a slow rate outlasts the calendar.
func InstantAfter(atMicros, waitMicros int64) int64 {
	if atMicros >= InstantMicrosMax || waitMicros > InstantMicrosMax-atMicros {
		return InstantMicrosMax
	}
	return atMicros + waitMicros
}
