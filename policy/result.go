package policy

// Result is the answer to one request of several: a decision, or the reason
// why there is none.
type Result struct {
	Decision Decision // meaningful when Err is nil
	Err      error
}
