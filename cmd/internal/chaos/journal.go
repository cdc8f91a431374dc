package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The types of journal lines.
const (
	sawClaim   = "claim"   // the store returned a lease for the job, with this token
	sawStart   = "start"   // a handler started
	sawIntent  = "intent"  // a settlement is about to be sent
	sawAnswer  = "answer"  // the store answered the settlement
	sawReceipt = "receipt" // the store acknowledged an enqueued job
	sawCancel  = "cancel"  // the store acknowledged a cancellation
	sawRetry   = "retry"   // a manual retry was sent, or acknowledged
	sawEdit    = "edit"    // the store acknowledged an edit
	sawMember  = "member"  // the store acknowledged a sealed group with this member; the key is its step
)

// Answers to a settlement.
const (
	applied  = "applied"
	fenced   = "fenced"
	unknown  = "unknown" // the call failed: the settlement may have been applied or not
	rejected = "rejected"
)

// A line is one entry of a journal. Times are in nanoseconds of this machine's clock.
type line struct {
	Saw        string         `json:"saw"`
	From       int64          `json:"from"`           // when the call began
	Till       int64          `json:"till,omitempty"` // when it returned
	Job        holdfast.ID    `json:"job"`
	Token      int            `json:"token,omitempty"`
	Generation int            `json:"generation,omitempty"`
	AsOf       time.Time      `json:"as_of,omitzero"` // the store's clock at the claim
	To         holdfast.State `json:"to,omitempty"`
	Delay      time.Duration  `json:"delay,omitempty"`
	Answer     string         `json:"answer,omitempty"`
	Do         string         `json:"do,omitempty"`  // action of the job's script
	Key        string         `json:"key,omitempty"` // unique key of the job
	Dependency string         `json:"dependency,omitempty"`
	Existing   bool           `json:"existing,omitempty"`
	Replaced   bool           `json:"replaced,omitempty"`
	Content    string         `json:"content,omitempty"` // of the job's script
	Group      holdfast.ID    `json:"group,omitzero"`

	process int // number of the process whose journal it is from
}

// A journal is a file in which one process records calls and answers. A written line survives a kill of the process. It is safe for concurrent use.
type journal struct {
	mu     sync.Mutex
	file   *os.File
	buffer bytes.Buffer
}

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the journal: %w", err)
	}
	return &journal{file: f}, nil
}

// write appends the lines with one write call. On an error it ends the process, because a run without its journal proves nothing.
func (j *journal) write(lines ...line) {
	if len(lines) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.buffer.Reset()
	encoder := json.NewEncoder(&j.buffer)
	for _, l := range lines {
		if err := encoder.Encode(l); err != nil {
			panic(fmt.Sprintf("cannot encode a journal line as JSON: %v", err))
		}
	}
	if _, err := j.file.Write(j.buffer.Bytes()); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: cannot write the journal:", err)
		os.Exit(exitFailed)
	}
}

// sync makes the written lines durable.
func (j *journal) sync() {
	if err := j.file.Sync(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: cannot sync the journal:", err)
		os.Exit(exitFailed)
	}
}

// journalPath is the path of the journal of the n-th process.
func journalPath(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("%05d.journal", n)) }

// readJournals reads the journals of all processes of a run. It ignores an incomplete last line, which a kill can leave.
func readJournals(dir string, processes int) ([]line, error) {
	var all []line
	for n := range processes {
		text, err := os.ReadFile(journalPath(dir, n))
		if os.IsNotExist(err) {
			continue // killed before it opened its journal
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read a journal: %w", err)
		}
		scanner := bufio.NewScanner(bytes.NewReader(text))
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			l := line{process: n}
			if json.Unmarshal(scanner.Bytes(), &l) == nil {
				all = append(all, l)
			}
		}
		if err := scanner.Err(); err != nil {
			return nil, fmt.Errorf("cannot read a journal: %w", err)
		}
	}
	return all, nil
}
