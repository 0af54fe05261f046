package simulate

// binsMax bounds a timeline: more could not be told apart in a picture.
const binsMax = 150

// binSeconds are the widths that a timeline's bins can have. Each divides the
// next, so that bins can be joined; after the last they double.
var binSeconds = []int64{1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600}

// count is how many requests were allowed and denied.
type count struct{ allowed, denied int64 }

// timeline counts requests over time in bins that grow with the time there is.
type timeline struct {
	width int64 // of a bin, in seconds
	first int64 // bin 0 begins at first*width seconds since 1970
	bins  []count
}

// add counts at a second. An earlier one than all before is possible too.
func (t *timeline) add(second int64, c count) {
	if t.width == 0 {
		t.width, t.first, t.bins = binSeconds[0], second/binSeconds[0], make([]count, 1)
	}
	for t.span(second) > binsMax {
		t.widen()
	}
	bin := second / t.width
	if ahead := t.first - bin; ahead > 0 {
		t.bins = append(make([]count, ahead), t.bins...)
		t.first = bin
	}
	if missing := bin - t.first - int64(len(t.bins)) + 1; missing > 0 {
		t.bins = append(t.bins, make([]count, missing)...)
	}
	at := &t.bins[bin-t.first]
	at.allowed += c.allowed
	at.denied += c.denied
}

// span is how many bins there are with that of a second.
func (t *timeline) span(second int64) int64 {
	bin := second / t.width
	return max(bin, t.first+int64(len(t.bins))-1) - min(bin, t.first) + 1
}

// widen joins bins to the next width.
func (t *timeline) widen() {
	width := 2 * t.width
	for _, seconds := range binSeconds {
		if seconds > t.width {
			width = seconds
			break
		}
	}
	joined := timeline{width: width, first: t.first * t.width / width}
	for i, c := range t.bins {
		at := (t.first+int64(i))*t.width/width - joined.first
		if at == int64(len(joined.bins)) {
			joined.bins = append(joined.bins, count{})
		}
		joined.bins[at].allowed += c.allowed
		joined.bins[at].denied += c.denied
	}
	*t = joined
}

// most is the largest number of requests in one bin.
func (t *timeline) most() int64 {
	most := int64(0)
	for _, c := range t.bins {
		most = max(most, c.allowed+c.denied)
	}
	return most
}
