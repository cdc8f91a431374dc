package openapi

import (
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

// names are the schema names of types whose own name would be ambiguous.
var names = map[reflect.Type]string{
	reflect.TypeFor[ops.StoryLine]():       "StoryLine",
	reflect.TypeFor[ops.HoldStatus]():      "HoldInForce",
	reflect.TypeFor[ops.IntegrityReport](): "DoctorReport",
	reflect.TypeFor[ops.Value]():           "VariationValue",
	reflect.TypeFor[api.Choice]():          "JobFilter",
	reflect.TypeFor[api.Rule]():            "RetentionRule",
	reflect.TypeFor[api.Code]():            "FailureCode",
	reflect.TypeFor[redrive.Spec]():        "RedriveOrder",
	reflect.TypeFor[redrive.Progress]():    "RedriveProgress",
	reflect.TypeFor[redrive.Refusal]():     "RedriveRefusal",
}

// namer makes schema names: the name of the type, or, if that is taken, with the package before it.
func namer() func(t reflect.Type, hint string) string {
	taken := map[string]reflect.Type{}
	return func(t reflect.Type, hint string) string {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if name, ok := names[t]; ok {
			return name
		}
		if t.Name() == "" || strings.Contains(t.Name(), "[") {
			return huma.DefaultSchemaNamer(t, hint)
		}
		name, pkg := t.Name(), path.Base(t.PkgPath())
		switch pkg {
		case "holdfast", "store", "ops", "apikey", "subscription", "schedule":
		case "api":
			if other := taken[name]; other != nil && other != t {
				name = "Wire" + name
			}
		default:
			name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
		}
		if taken[name] == nil && t.Kind() == reflect.Struct {
			taken[name] = t
		}
		return name
	}
}

// Types for strings of a certain form. They stand in for types whose packages do not know OpenAPI.
type (
	asDuration   string
	asSpan       string
	asID         string
	asState      string
	asGroupState string
	asStatus     string
	asCharge     string
	asScope      string
	asBreaker    string
	asRedrive    string
	asBlame      string
	asMissed     string
)

func aliases() map[reflect.Type]reflect.Type {
	return map[reflect.Type]reflect.Type{
		reflect.TypeFor[time.Duration]():       reflect.TypeFor[asDuration](),
		reflect.TypeFor[api.Span]():            reflect.TypeFor[asSpan](),
		reflect.TypeFor[holdfast.ID]():         reflect.TypeFor[asID](),
		reflect.TypeFor[holdfast.State]():      reflect.TypeFor[asState](),
		reflect.TypeFor[holdfast.GroupState](): reflect.TypeFor[asGroupState](),
		reflect.TypeFor[store.Status]():        reflect.TypeFor[asStatus](),
		reflect.TypeFor[store.Charge]():        reflect.TypeFor[asCharge](),
		reflect.TypeFor[apikey.Scope]():        reflect.TypeFor[asScope](),
		reflect.TypeFor[breaker.State]():       reflect.TypeFor[asBreaker](),
		reflect.TypeFor[redrive.State]():       reflect.TypeFor[asRedrive](),
		reflect.TypeFor[failure.Blame]():       reflect.TypeFor[asBlame](),
		reflect.TypeFor[schedule.Missed]():     reflect.TypeFor[asMissed](),
	}
}

// length is the pattern of durations such as 1m30s.
const length = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+|0`

func (asDuration) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "Duration", &huma.Schema{Type: huma.TypeString, Pattern: `^-?(` + length + `)$`, Examples: []any{"1m30s"}})
}

func (asSpan) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "DurationOrForever", &huma.Schema{Type: huma.TypeString, Pattern: `^(forever|` + length + `)$`, Examples: []any{"720h"}})
}

func (asID) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "ID", &huma.Schema{Type: huma.TypeString, Format: "uuid", Examples: []any{"01890a5d-ac96-774b-bcce-b302099a8057"}})
}

func (asState) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "State", oneOf(holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled))
}

func (asGroupState) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "GroupState", oneOf(holdfast.GroupOpen, holdfast.GroupProcessing, holdfast.GroupReady, holdfast.GroupPartial, holdfast.GroupFailed, holdfast.GroupCancelled, holdfast.GroupExpired))
}

func (asStatus) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "ErrorStatus", oneOf(store.StatusOpen, store.StatusAcknowledged, store.StatusIgnored, store.StatusResolved, store.StatusRegressed))
}

func (asCharge) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "Charge", oneOf(store.ChargeNone, store.ChargeFailure, store.ChargeCrash, store.ChargeRelease))
}

func (asScope) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "Scope", oneOf(apikey.Viewer, apikey.Worker, apikey.Operator, apikey.Admin))
}

func (asBreaker) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "BreakerState", oneOf(breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.Recovering, breaker.ForcedOpen, breaker.ForcedClosed))
}

func (asRedrive) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "RedriveState", oneOf(redrive.Running, redrive.Paused, redrive.Stopped, redrive.Cancelled, redrive.Done))
}

func (asBlame) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "Blame", oneOf(failure.BlameUser, failure.BlameDependency, failure.BlameUs))
}

func (asMissed) Schema(r huma.Registry) *huma.Schema {
	return shared(r, "MissedSlots", oneOf(schedule.Skip, schedule.One, schedule.All))
}

// shared is a schema in the components.
func shared(r huma.Registry, name string, s *huma.Schema) *huma.Schema {
	r.Map()[name] = s
	return &huma.Schema{Ref: schemas + name}
}

func oneOf[S ~string](values ...S) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, value := range values {
		s.Enum = append(s.Enum, string(value))
	}
	return s
}

// polish adds descriptions from the code to the schema of a type.
func (w *writer) polish(s *huma.Schema, t reflect.Type) {
	if t == nil || t.Kind() != reflect.Struct {
		return
	}
	if s.Description == "" {
		s.Description = w.words[wordFor(t, "")]
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		if f.Anonymous || p == nil {
			continue
		}
		if p.Description == "" {
			p.Description = w.words[wordFor(declarer(t, f), f.Name)]
		}
		if p.Description == "" {
			p.Description = usualWords[name]
		}
		if el := f.Type; el.Kind() == reflect.Slice && el.Elem().Kind() == reflect.Pointer && p.Items != nil && p.Items.Ref != "" {
			p.Items = &huma.Schema{AnyOf: []*huma.Schema{{Ref: p.Items.Ref}, {Type: "null"}}}
		}
	}
	if t == reflect.TypeFor[api.Problem]() {
		s.Properties["code"].Enum = oneOf(api.Codes()...).Enum
	}
}

// declarer is the type in which a field is declared, which may be embedded.
func declarer(t reflect.Type, f reflect.StructField) reflect.Type {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}

// wordFor is the name under which a comment is stored.
func wordFor(t reflect.Type, field string) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return strings.TrimSuffix(path.Base(t.PkgPath())+"."+name+"."+field, ".")
}

// webhooks describes the requests that webhook receivers get.
func (w *writer) webhooks() {
	w.told = append(w.told, w.schema(reflect.TypeFor[store.Event](), "Event"))
	told := *w.registry.Map()["Event"]
	told.Properties = map[string]*huma.Schema{}
	for name, p := range w.registry.Map()["Event"].Properties {
		told.Properties[name] = p
	}
	told.AdditionalProperties, told.Description = nil, "What happened, to what, and why."
	w.registry.Map()["CloudEventData"] = &told
	text := func(about string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: about} }
	w.registry.Map()["CloudEvent"] = &huma.Schema{
		Type: huma.TypeObject, Description: "An event in the JSON form of CloudEvents 1.0.",
		Required: []string{"specversion", "id", "source", "type", "time", "datacontenttype", "sequence", "data"},
		Properties: map[string]*huma.Schema{
			"specversion":     {Type: huma.TypeString, Const: "1.0"},
			"id":              text("Number of the event in the feed. The same event has the same id, however often it is sent."),
			"source":          text("Server that sent the event."),
			"type":            {Type: huma.TypeString, Description: "What happened.", Examples: []any{"io.holdfast.job.failed"}},
			"subject":         text("Id of the job, or another subject such as group/<id>."),
			"time":            {Type: huma.TypeString, Format: "date-time"},
			"datacontenttype": {Type: huma.TypeString, Const: "application/json"},
			"sequence":        text("Number of the event with leading zeros, so that strings sort like numbers."),
			"data":            {Ref: schemas + "CloudEventData"},
		},
	}
	one := &huma.Schema{Ref: schemas + "CloudEvent"}
	header := func(name, about string, required bool) *huma.Param {
		return &huma.Param{Name: name, In: "header", Required: required, Description: about, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	w.doc.Webhooks = map[string]*huma.PathItem{"event": {Post: &huma.Operation{
		OperationID: "receive-event", Summary: "Request to a webhook receiver", Tags: []string{"subscriptions"},
		Description: "Sent to the target of a subscription with the sink webhook, and signed as in Standard Webhooks. A delivery is repeated until it is answered with 2xx, so a receiver may get it twice: recognise duplicates by webhook-id, or by the ids of the events.",
		Security:    []map[string][]string{{}},
		Parameters: []*huma.Param{
			header("webhook-id", "Id of the delivery. It is the same when the delivery is sent again.", true),
			header("webhook-timestamp", "When the request was sent, in seconds since 1970.", true),
			header("webhook-signature", "One or more signatures v1,<base64>, separated by spaces. Missing when the subscription has no secret.", false),
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/cloudevents+json":       {Schema: one},
			"application/cloudevents-batch+json": {Schema: &huma.Schema{Type: huma.TypeArray, Items: one}},
		}},
		Responses: map[string]*huma.Response{
			"2XX": {Description: "The receiver has accepted the delivery."},
			"410": {Description: "The receiver wants no more events: the subscription is disabled."},
		},
	}}}
}
