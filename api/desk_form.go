package api

import (
	"errors"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// Some types of the vocabulary have no form of their own in JSON. These are the forms in which they travel, wherever they stand.
var (
	written = json.JoinMarshalers(
		writes(func(f holdfast.Filter) Choice { return choiceOf(f) }),
		writes(func(c failure.Code) Code { return Code(c) }),
		writes(func(r holdfast.Retain) Rule {
			return Rule{r.Name, r.State, r.Kind, r.Owner, r.Code, r.Group, Span(r.For)}
		}),
		writes(func(s Span) string { return s.text() }),
	)
	understood = json.JoinUnmarshalers(
		reads(func(c Choice) (holdfast.Filter, error) { return c.filter(), nil }),
		reads(func(c Code) (failure.Code, error) { return failure.Code(c), nil }),
		reads(func(r Rule) (holdfast.Retain, error) {
			return holdfast.Retain{Name: r.Name, State: r.State, Kind: r.Kind, Owner: r.Owner, Code: r.Code, Group: r.Group, For: time.Duration(r.For)}, nil
		}),
		reads(parseSpan),
	)
)

// Forms tells for types that have no form of their own in which one they travel.
func Forms() map[reflect.Type]reflect.Type {
	return map[reflect.Type]reflect.Type{
		reflect.TypeFor[holdfast.Filter](): reflect.TypeFor[Choice](),
		reflect.TypeFor[failure.Code]():    reflect.TypeFor[Code](),
		reflect.TypeFor[holdfast.Retain](): reflect.TypeFor[Rule](),
	}
}

func writes[T, Form any](as func(T) Form) *json.Marshalers {
	return json.MarshalToFunc(func(e *jsontext.Encoder, value T) error { return json.MarshalEncode(e, as(value)) })
}

func reads[T, Form any](from func(Form) (T, error)) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *T) error {
		var form Form
		err := json.UnmarshalDecode(d, &form)
		if err == nil {
			*to, err = from(form)
		}
		return err
	})
}

// A Choice selects jobs, in a body.
type Choice struct {
	State       holdfast.State `json:"state,omitempty" doc:"queued, processing, complete, failed or cancelled"`
	Kind        string         `json:"kind,omitempty" doc:"only this kind"`
	Queue       string         `json:"queue,omitempty" doc:"only this queue"`
	Owner       string         `json:"owner,omitempty" doc:"only this owner's"`
	Tag         string         `json:"tag,omitempty" doc:"only with this tag"`
	Code        string         `json:"code,omitempty" doc:"only with this code of the last failure"`
	Fingerprint string         `json:"fingerprint,omitempty" doc:"only of this error group"`
	Dependency  string         `json:"dependency,omitempty" doc:"only those that call this"`
	Generation  int            `json:"generation,omitempty" doc:"only in this generation; 0: any"`
	Redrive     holdfast.ID    `json:"redrive,omitzero" doc:"only what this redrive took"`
	Group       holdfast.ID    `json:"group,omitzero" doc:"only members of this group"`
	OlderThan   time.Duration  `json:"older_than,omitempty" doc:"only enqueued longer ago than this, such as 24h"`
	YoungerThan time.Duration  `json:"younger_than,omitempty" doc:"only enqueued less long ago than this"`
	DeadLetters bool           `json:"dead_letters,omitempty" doc:"only failed ones that are neither discarded nor benign"`
	Benign      *bool          `json:"benign,omitempty" doc:"true: only jobs that failed as was to be expected; false: only jobs that failed otherwise"`
	Retrying    bool           `json:"retrying,omitempty" doc:"only queued ones that failed before in this generation"`
	Worker      string         `json:"worker,omitempty" doc:"only those in this worker's hands"`
	Look        int            `json:"look,omitempty" doc:"look at so many jobs at most where no index leads to what is wanted: then a page may be short, or empty, and its cursor goes on; 0: as many as it takes"`
	Limit       int            `json:"limit,omitempty" doc:"how many, at most 200"`
	Cursor      string         `json:"cursor,omitempty" doc:"go on after the page that gave this cursor"`
}

func choiceOf(f holdfast.Filter) Choice {
	return Choice{
		f.State, f.Kind, f.Queue, f.Owner, f.Tag, f.Code, f.Fingerprint, f.Dependency, f.Generation, f.Redrive, f.Group,
		f.OlderThan, f.YoungerThan, f.DeadLetters, f.Benign, f.Retrying, f.Worker, f.Look, f.Limit, f.Cursor,
	}
}

func (c Choice) filter() holdfast.Filter {
	f := holdfast.Filter{
		State: c.State, Kind: c.Kind, Queue: c.Queue, Owner: c.Owner, Tag: c.Tag, Code: c.Code, Fingerprint: c.Fingerprint, Dependency: c.Dependency,
		Generation: c.Generation, Redrive: c.Redrive, Group: c.Group, OlderThan: c.OlderThan, YoungerThan: c.YoungerThan,
	}
	f.DeadLetters, f.Benign, f.Retrying, f.Worker, f.Look, f.Limit, f.Cursor = c.DeadLetters, c.Benign, c.Retrying, c.Worker, c.Look, c.Limit, c.Cursor
	return f
}

// A Code explains a failure: who is to blame, and what can be done.
type Code struct {
	Name       string        `json:"name"`
	Category   string        `json:"category,omitempty"`
	Retryable  bool          `json:"retryable" doc:"waiting may cure it"`
	Blame      failure.Blame `json:"blame,omitempty" doc:"who has to act"`
	HTTPStatus int           `json:"http_status,omitempty" doc:"what a face answers when this is the reason"`
	Message    string        `json:"message,omitempty" doc:"one line for people"`
	Remedy     string        `json:"remedy,omitempty" doc:"one line for operators: what to look at, what to do"`
	Benign     bool          `json:"benign,omitempty" doc:"an expected end: failures with this code raise no alarm"`
}

// A Rule says how long ended jobs are kept. Empty fields match everything.
type Rule struct {
	Name  string              `json:"name" doc:"tombstones and counts say it"`
	State holdfast.State      `json:"state,omitempty" doc:"complete, failed or cancelled"`
	Kind  string              `json:"kind,omitempty"`
	Owner string              `json:"owner,omitempty"`
	Code  string              `json:"code,omitempty" doc:"of the failure it ended with"`
	Group holdfast.GroupState `json:"group,omitempty" doc:"the outcome of the group it belongs to"`
	For   Span                `json:"for" doc:"how long after its end, such as 720h, or forever; 0s purges it at once"`
}

// A Span is a duration, or for ever.
type Span time.Duration

const forever = "forever"

func (s Span) text() string {
	if time.Duration(s) == holdfast.Forever {
		return forever
	}
	return time.Duration(s).String()
}

func parseSpan(text string) (Span, error) {
	if text == forever {
		return Span(holdfast.Forever), nil
	}
	d, err := ParseDuration(text)
	if err == nil && d == holdfast.Forever {
		err = errors.New("-1ns: write forever")
	}
	return Span(d), err
}

// Codes are those that problems have, for whoever goes by them.
func Codes() (codes []string) {
	for _, t := range troubles {
		codes = append(codes, t.code)
	}
	return codes
}
