package api

import (
	"errors"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// Some types have no JSON form of their own. These marshalers give them one wherever they occur.
var (
	formMarshalers = json.JoinMarshalers(
		marshalAs(func(f store.Filter) Choice { return choiceOf(f) }),
		marshalAs(func(c failure.Code) Code { return Code(c) }),
		marshalAs(func(r store.RetentionRule) Rule {
			return Rule{r.Name, r.State, r.Kind, r.Owner, r.Code, r.Group, Span(r.For)}
		}),
		marshalAs(func(s Span) string { return s.text() }),
	)
	formUnmarshalers = json.JoinUnmarshalers(
		unmarshalAs(func(c Choice) (store.Filter, error) { return c.filter(), nil }),
		unmarshalAs(func(c Code) (failure.Code, error) { return failure.Code(c), nil }),
		unmarshalAs(func(r Rule) (store.RetentionRule, error) {
			return store.RetentionRule{Name: r.Name, State: r.State, Kind: r.Kind, Owner: r.Owner, Code: r.Code, Group: r.Group, For: time.Duration(r.For)}, nil
		}),
		unmarshalAs(parseSpan),
	)
)

// Forms maps each such type to its JSON form. The OpenAPI document describes the form.
func Forms() map[reflect.Type]reflect.Type {
	return map[reflect.Type]reflect.Type{
		reflect.TypeFor[store.Filter]():        reflect.TypeFor[Choice](),
		reflect.TypeFor[failure.Code]():        reflect.TypeFor[Code](),
		reflect.TypeFor[store.RetentionRule](): reflect.TypeFor[Rule](),
	}
}

func marshalAs[T, Form any](as func(T) Form) *json.Marshalers {
	return json.MarshalToFunc(func(e *jsontext.Encoder, value T) error { return json.MarshalEncode(e, as(value)) })
}

func unmarshalAs[T, Form any](from func(Form) (T, error)) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *T) error {
		var form Form
		err := json.UnmarshalDecode(d, &form)
		if err == nil {
			*to, err = from(form)
		}
		return err
	})
}

// A Choice is the JSON form of a store.Filter.
type Choice struct {
	State       holdfast.State `json:"state,omitempty" doc:"Only jobs in this state."`
	Kind        string         `json:"kind,omitempty" doc:"Only jobs of this kind."`
	Queue       string         `json:"queue,omitempty" doc:"Only jobs in this queue."`
	Owner       string         `json:"owner,omitempty" doc:"Only jobs of this owner."`
	Tag         string         `json:"tag,omitempty" doc:"Only jobs with this tag."`
	Code        string         `json:"code,omitempty" doc:"Only jobs whose last failure has this code."`
	Fingerprint string         `json:"fingerprint,omitempty" doc:"Only jobs of this error group."`
	Dependency  string         `json:"dependency,omitempty" doc:"Only jobs that call this dependency."`
	Generation  int            `json:"generation,omitempty" doc:"Only jobs in this generation; 0 for any."`
	Redrive     holdfast.ID    `json:"redrive,omitzero" doc:"Only jobs that this redrive took."`
	Group       holdfast.ID    `json:"group,omitzero" doc:"Only members of this group."`
	OlderThan   time.Duration  `json:"older_than,omitempty" doc:"Only jobs older than this, such as 24h."`
	YoungerThan time.Duration  `json:"younger_than,omitempty" doc:"Only jobs newer than this."`
	DeadLetters bool           `json:"dead_letters,omitempty" doc:"Only failed jobs that are neither discarded nor benign."`
	Benign      *bool          `json:"benign,omitempty" doc:"True: only jobs whose failure is benign. False: only jobs that failed otherwise."`
	Retrying    bool           `json:"retrying,omitempty" doc:"Only queued jobs that have failed before in this generation."`
	Worker      string         `json:"worker,omitempty" doc:"Only jobs that this worker holds."`
	Look        int            `json:"look,omitempty" doc:"Maximum number of jobs to examine when no index serves the filter; 0 for no maximum. The page may then be short or empty, and its cursor continues."`
	Limit       int            `json:"limit,omitempty" doc:"Page size, at most 200."`
	Cursor      string         `json:"cursor,omitempty" doc:"Cursor of the previous page; leave it out for the first."`
}

func choiceOf(f store.Filter) Choice {
	return Choice{
		f.State, f.Kind, f.Queue, f.Owner, f.Tag, f.Code, f.Fingerprint, f.Dependency, f.Generation, f.Redrive, f.Group,
		f.OlderThan, f.NewerThan, f.DeadLetters, f.Benign, f.Retrying, f.Worker, f.MaxScan, f.Limit, f.Cursor,
	}
}

func (c Choice) filter() store.Filter {
	f := store.Filter{
		State: c.State, Kind: c.Kind, Queue: c.Queue, Owner: c.Owner, Tag: c.Tag, Code: c.Code, Fingerprint: c.Fingerprint, Dependency: c.Dependency,
		Generation: c.Generation, Redrive: c.Redrive, Group: c.Group, OlderThan: c.OlderThan, NewerThan: c.YoungerThan,
	}
	f.DeadLetters, f.Benign, f.Retrying, f.Worker, f.MaxScan, f.Limit, f.Cursor = c.DeadLetters, c.Benign, c.Retrying, c.Worker, c.Look, c.Limit, c.Cursor
	return f
}

// A Code is the JSON form of a failure.Code: it describes one cause of failure.
type Code struct {
	Name       string        `json:"name" doc:"Name of the code, such as GW_5XX."`
	Category   string        `json:"category,omitempty" doc:"Class of the code."`
	Retryable  bool          `json:"retryable" doc:"Whether a later attempt may succeed."`
	Blame      failure.Blame `json:"blame,omitempty" doc:"Who has to act: the user, the dependency or us."`
	HTTPStatus int           `json:"http_status,omitempty" doc:"HTTP status that an application answers when this is the cause."`
	Message    string        `json:"message,omitempty" doc:"One line for the people who use the application."`
	Remedy     string        `json:"remedy,omitempty" doc:"One line for operators: what to check and what to do."`
	Benign     bool          `json:"benign,omitempty" doc:"The failure is expected and raises no alert."`
}

// A Rule is the JSON form of a store.RetentionRule: how long ended jobs are kept. Empty fields match everything.
type Rule struct {
	Name  string              `json:"name" doc:"Name of the rule. Tombstones and counts refer to it."`
	State holdfast.State      `json:"state,omitempty" doc:"Only jobs that ended in this state: complete, failed or cancelled."`
	Kind  string              `json:"kind,omitempty" doc:"Only jobs of this kind."`
	Owner string              `json:"owner,omitempty" doc:"Only jobs of this owner."`
	Code  string              `json:"code,omitempty" doc:"Only jobs whose last failure has this code."`
	Group holdfast.GroupState `json:"group,omitempty" doc:"Only members of groups with this outcome."`
	For   Span                `json:"for" doc:"How long a job is kept after its end, such as 720h, or forever. 0s purges it at once."`
}

// A Span is a duration, or forever.
type Span time.Duration

const forever = "forever"

func (s Span) text() string {
	if time.Duration(s) == store.Forever {
		return forever
	}
	return time.Duration(s).String()
}

func parseSpan(text string) (Span, error) {
	if text == forever {
		return Span(store.Forever), nil
	}
	d, err := ParseDuration(text)
	if err == nil && d == store.Forever {
		err = errors.New("-1ns is not allowed: use the word forever")
	}
	return Span(d), err
}

// Codes lists the codes that problems can have.
func Codes() (codes []string) {
	for _, t := range problemKinds {
		codes = append(codes, t.code)
	}
	return codes
}
