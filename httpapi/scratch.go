package httpapi

import "sync"

// scratchBytesMax is the largest buffer that is kept for the next request, so
// that a few large batches do not hold their memory for ever.
const scratchBytesMax = 256 << 10

// scratch is the working memory of one request. Nothing in it outlives the
// request: strings and answers are copied out.
type scratch struct {
	body   []byte
	answer []byte
	fields fields
}

// scratches lends working memory.
type scratches struct{ pool sync.Pool }

func (s *scratches) take() *scratch {
	if lent, ok := s.pool.Get().(*scratch); ok {
		return lent
	}
	return new(scratch)
}

func (s *scratches) giveBack(lent *scratch) {
	if cap(lent.body) > scratchBytesMax || cap(lent.answer) > scratchBytesMax {
		return
	}
	lent.body, lent.answer = lent.body[:0], lent.answer[:0]
	lent.fields.reset()
	s.pool.Put(lent)
}
