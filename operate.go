package holdfast

import "time"

// An Intervention is a person's word on one job.
type Intervention struct {
	Job    ID
	Owner  string // when set, the job must be this owner's; anybody else's is ErrNotFound
	Actor  string // who: required
	Reason string // why
	// Request is the id of the request in which it was asked for; it is kept with what was done.
	Request string
	Group   ID // with RetryGroup and CancelGroup, instead of Job
	// StuckAfter lets Retry take a job from a worker that has been at it for longer than this. 0: only past its lease.
	StuckAfter time.Duration
}

// Presence is a worker process as it last reported.
type Presence struct {
	Worker string   `json:"worker"`
	Queues []string `json:"queues"`
	Kinds  []string `json:"kinds"`
	// Depends says for kinds what they call. The store remembers it: holds on a dependency act on jobs of these kinds that do
	// not name another.
	Depends   map[string]string `json:"depends,omitempty"`
	Version   string            `json:"version,omitempty"` // of the application
	Slots     int               `json:"slots"`
	StartedAt time.Time         `json:"started_at"` // set by the store at the first report
	SeenAt    time.Time         `json:"seen_at"`    // set by the store
	Until     time.Time         `json:"until"`      // set by the store: believed gone after this
	For       time.Duration     `json:"-"`          // how long to believe this report; 0: it is leaving
}

// A Filter narrows a list. Empty fields do not narrow.
type Filter struct {
	State       State
	Kind        string
	Queue       string
	Owner       string
	Tag         string
	Code        string // of the last failure
	Fingerprint string // of the last failure
	Dependency  string
	Generation  int // 0: any
	Redrive     ID  // taken by this redrive
	Group       ID  // member of this group
	OlderThan   time.Duration
	YoungerThan time.Duration
	DeadLetters bool   // failed and not discarded
	Limit       int    // at most 200; 50 when zero
	Cursor      string // from the page before
}

// History is everything a store can prove about one job, oldest first. Package ops folds it into the story.
type History struct {
	Job      Job       `json:"job"`
	Attempts []Attempt `json:"attempts"` // every attempt that ended other than by completing, and late ones
	Events   []Event   `json:"events"`
}

// A Count is how many jobs of one queue and kind stand in one state.
type Count struct {
	Queue  string    `json:"queue"`
	Kind   string    `json:"kind"`
	State  State     `json:"state"`
	Due    bool      `json:"due"` // queued and claimable, but for holds
	Jobs   int       `json:"jobs"`
	Oldest time.Time `json:"oldest,omitzero"` // creation time of the oldest
}

// A Finding is one broken promise.
type Finding struct {
	Rule   string `json:"rule"` // which promise
	Job    string `json:"job"`  // which row: a job's id, or what else names it
	Detail string `json:"detail"`
}
