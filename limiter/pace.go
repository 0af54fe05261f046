package limiter

// pace bounds the groups of a lane's batches by what the store gets done within
// the bound of a call. Where rows have many policy changes to catch up with, or
// the machine is busy, that may be few; a lane which went on sending many would
// get nothing done at all. The zero value bounds nothing.
type pace struct {
	groupsMax int  // 0: no bound but the batcher's
	slowed    bool // by the batch in hand
}

// max is how many groups the next call should have at most.
func (p *pace) max() int {
	if p.groupsMax == 0 {
		return BatchAsksBound
	}
	return p.groupsMax
}

// slow halves the pace: a call of so many groups took too long, though it
// waited for nobody.
func (p *pace) slow(groups int) {
	p.groupsMax, p.slowed = max(1, groups/2), true
}

// ended is for a batch that is over. One that was as large as it might be, and
// did not take too long, lets the next be a little larger.
func (p *pace) ended(groups int) {
	if p.groupsMax > 0 && groups >= p.groupsMax && !p.slowed {
		p.groupsMax += 1 + p.groupsMax/8
	}
	if p.groupsMax >= BatchAsksBound {
		p.groupsMax = 0
	}
	p.slowed = false
}
