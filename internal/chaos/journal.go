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

// What a journal's lines say.
const (
	sawClaim   = "claim"   // the store handed the job over under this token
	sawStart   = "start"   // a handler began
	sawIntent  = "intent"  // a settlement is about to be sent
	sawAnswer  = "answer"  // the store answered it
	sawReceipt = "receipt" // a job was acknowledged
	sawCancel  = "cancel"  // a request to cancel was granted
	sawRetry   = "retry"   // a manual retry was sent, or granted
	sawEdit    = "edit"    // an edit was granted
)

// Answers to a settlement.
const (
	applied  = "applied"
	fenced   = "fenced"
	unknown  = "unknown" // the call failed: it may have been applied or not
	rejected = "rejected"
)

// A line is one thing a process saw. Times are nanoseconds of this machine's clock.
type line struct {
	Saw        string         `json:"saw"`
	From       int64          `json:"from"`           // when it began
	Till       int64          `json:"till,omitempty"` // when it was answered
	Job        holdfast.ID    `json:"job"`
	Token      int            `json:"token,omitempty"`
	Generation int            `json:"generation,omitempty"`
	AsOf       time.Time      `json:"as_of,omitzero"` // the store's clock when it handed the job over
	To         holdfast.State `json:"to,omitempty"`
	Delay      time.Duration  `json:"delay,omitempty"`
	Answer     string         `json:"answer,omitempty"`
	Do         string         `json:"do,omitempty"`  // what the job's script does
	Key        string         `json:"key,omitempty"` // its unique key
	Dependency string         `json:"dependency,omitempty"`
	Existing   bool           `json:"existing,omitempty"`

	process int // whose journal it was read from
}

// A journal is the file into which one process writes what it saw. A line that was written survives the process.
type journal struct {
	mu     sync.Mutex
	file   *os.File
	buffer bytes.Buffer
}

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the journal cannot be opened: %w", err)
	}
	return &journal{file: f}, nil
}

// write appends the lines in one go. A process that cannot write its journal proves nothing, so it ends.
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
			panic(fmt.Sprintf("a journal line cannot be written as JSON: %v", err))
		}
	}
	if _, err := j.file.Write(j.buffer.Bytes()); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: the journal cannot be written:", err)
		os.Exit(exitBroken)
	}
}

// sync makes what was written durable.
func (j *journal) sync() {
	if err := j.file.Sync(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: the journal cannot be synced:", err)
		os.Exit(exitBroken)
	}
}

// journalPath is where the n-th process of a run keeps its journal.
func journalPath(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("%05d.journal", n)) }

// readJournals reads what all processes of a run saw. A last line without an end was cut by a kill and says nothing.
func readJournals(dir string, processes int) ([]line, error) {
	var all []line
	for n := range processes {
		text, err := os.ReadFile(journalPath(dir, n))
		if os.IsNotExist(err) {
			continue // killed before its first breath
		}
		if err != nil {
			return nil, fmt.Errorf("a journal cannot be read: %w", err)
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
			return nil, fmt.Errorf("a journal cannot be read: %w", err)
		}
	}
	return all, nil
}
