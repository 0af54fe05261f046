package policy

// StoreState is what a store tells of itself.
type StoreState struct {
	Database      string // its name
	ServerVersion string
	Schema        string // "major.minor"
	InRecovery    bool   // it follows another server, and decides nothing
	Generation    int64  // of the policy set
	Incarnation   string // the life of the fast state; another one after a crash
	Losses        []StateLoss
}

// StateLoss is a crash of the store that emptied the fast state.
type StateLoss struct {
	FoundAtMicros int64
	PoliciesIdle  int // fast policies whose keys began anew
	PoliciesEmpty int // those whose keys had used up everything
}
