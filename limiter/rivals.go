package limiter

// rivalBatches is how many batches of a general lane lock their rows at once
// after one that met rivals: what it has lost to them is then a small part.
const rivalBatches = 32

// rivals chooses a general lane's path. A call of the fast one writes rows
// where it has seen them; when another session has written one of them in
// between, all of the call was in vain. Sessions that often ask for the same
// keys do better to lock them first. The zero value has met nobody.
type rivals struct {
	batches int // that still take the settling path
}

// path is the one that the next batch takes at first.
func (r *rivals) path() path {
	if r.batches == 0 {
		return fast
	}
	r.batches--
	return settling
}

// met says whether a batch on the fast path came in somebody's way.
func (r *rivals) met(somebody bool) {
	if somebody {
		r.batches = rivalBatches
	}
}
