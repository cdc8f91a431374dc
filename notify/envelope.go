package notify

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// TypePrefix begins the CloudEvents type of every event; subscription.Type is the rest.
const TypePrefix = "io.holdfast."

// DefaultSource is the CloudEvents source when the Config has none.
const DefaultSource = "/holdfast"

// An Envelope is an event in the JSON form of CloudEvents 1.0.
type Envelope struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"` // number of the event in the feed
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"` // id of the job, or another subject such as group/<id>
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Sequence        string    `json:"sequence"` // CloudEvents extension: the number with leading zeros, so that strings sort like numbers
	Data            Payload   `json:"data"`
}

// A Payload is an event as receivers get it. Durations are strings such as "1.5s", as everywhere in the API.
type Payload struct{ store.Event }

// payload replaces the event's duration by a string.
type payload struct {
	store.Event
	Took string `json:"took,omitempty"`
}

// MarshalJSON encodes the event with its duration as a string.
func (p Payload) MarshalJSON() ([]byte, error) {
	text := ""
	if p.Took != 0 {
		text = p.Took.String()
	}
	return json.Marshal(payload{p.Event, text})
}

// UnmarshalJSON is the reverse of MarshalJSON.
func (p *Payload) UnmarshalJSON(body []byte) error {
	var read payload
	if err := json.Unmarshal(body, &read); err != nil {
		return err
	}
	p.Event = read.Event
	if read.Took == "" {
		return nil
	}
	took, err := time.ParseDuration(read.Took)
	p.Event.Took = took
	return err
}

// Wrap returns the envelope of an event. The same event has the same id for every receiver.
func Wrap(source string, e store.Event) Envelope {
	if source == "" {
		source = DefaultSource
	}
	subject := e.Subject
	if !e.Job.IsZero() {
		subject = e.Job.String()
	}
	seq := strconv.FormatInt(e.Seq, 10)
	return Envelope{
		SpecVersion: "1.0", ID: seq, Source: source, Type: TypePrefix + subscription.Type(e), Subject: subject, Time: e.At.UTC(),
		DataContentType: "application/json", Sequence: pad(seq), Data: Payload{e},
	}
}

func pad(seq string) string {
	const wide = "0000000000000000000"
	return wide[:max(0, len(wide)-len(seq))] + seq
}
