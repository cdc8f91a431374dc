package notify

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
)

// TypePrefix begins the type of every event as receivers see it; subscription.Type is the rest.
const TypePrefix = "io.holdfast."

// DefaultSource is where events come from unless the Config says otherwise.
const DefaultSource = "/holdfast"

// An Envelope is an event in the JSON form of CloudEvents 1.0.
type Envelope struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"` // its number in the feed
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"` // a job's id, or what else it is about
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Sequence        string    `json:"sequence"` // an extension: the number, so wide that texts sort like numbers
	Data            Payload   `json:"data"`
}

// A Payload is an event as receivers read it. Durations are texts such as "1.5s", as everywhere in the API.
type Payload struct{ holdfast.Event }

// payload puts the text in the place of the event's own duration.
type payload struct {
	holdfast.Event
	Took string `json:"took,omitempty"`
}

// MarshalJSON writes the event with its duration as a text.
func (p Payload) MarshalJSON() ([]byte, error) {
	text := ""
	if p.Took != 0 {
		text = p.Took.String()
	}
	return json.Marshal(payload{p.Event, text})
}

// UnmarshalJSON reads what MarshalJSON writes.
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

// Wrap puts an event into its envelope. The same event has the same id for every receiver.
func Wrap(source string, e holdfast.Event) Envelope {
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
