package failure

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// Limits of a failure record besides its detail.
const (
	maxContext      = 32 // facts
	maxContextKey   = 64
	maxContextValue = 256
	maxWhy          = 1000
)

// A diagnosis is the classification of a failure, before the decision about a retry.
type diagnosis struct {
	code    Code
	class   Class
	marks   marks
	strange bool // the code is not in the taxonomy
}

// diagnose gives an outcome its code. A code from the handler comes first; then, for a returned error, the rules; every
// other event has a code of its own, given by code and rule.
func (r Rules) diagnose(o Outcome, code, rule string) diagnosis {
	var d diagnosis
	d.class = Class{Code: code, Rule: rule}
	if o.Err != nil {
		var facts Class
		d.marks, facts = readError(o.Err)
		d.class = r.choose(o, d)
		d.class.Context = merge(d.class.Context, facts.Context)
		if d.class.RetryAfter <= 0 {
			d.class.RetryAfter = facts.RetryAfter
		}
	}
	d.code, d.strange = r.lookUp(d.class.Code)
	return d
}

// choose selects between the handler's code, the rules and the code of the event.
func (r Rules) choose(o Outcome, d diagnosis) Class {
	ran := o.Event == Returned || o.Event == TimedOut || o.Event == Panicked
	switch {
	case d.marks.code != "" && ran:
		return Class{Code: d.marks.code, Rule: "the handler"}
	case o.Event == Returned && d.class.Code == "":
		return r.classify(o.Err)
	case o.Event == TimedOut:
		// The code must be one of the category timeout; a rule may only choose which.
		class := r.classify(o.Err)
		if code, _ := r.lookUp(class.Code); code.Category == "timeout" {
			return class
		}
	}
	return d.class
}

// lookUp returns the code with a name. A code that is not in the taxonomy is treated like UNKNOWN; it keeps its name if
// that is a valid name.
func (r Rules) lookUp(name string) (code Code, strange bool) {
	if code, ok := r.Taxonomy.Code(name); ok {
		return code, false
	}
	code, _ = r.Taxonomy.Code(codeUnknown)
	if ValidName(name) {
		code.Name = name
	}
	return code, true
}

// readError reads from an error what does not depend on its code. If a method of the error panics, the values read so far are kept.
func readError(err error) (m marks, facts Class) {
	defer func() { _ = recover() }()
	m = readMarks(err)
	facts.RetryAfter = askedToWait(err)
	facts.Context = make(map[string]string)
	if status, ok := httpStatus(err); ok {
		facts.Context["http_status"] = strconv.Itoa(status)
	}
	if exit, ok := exitCode(err); ok {
		facts.Context["exit_code"] = strconv.Itoa(exit)
	}
	return m, facts
}

// record returns the failure record of an outcome. Secrets are removed from it.
func (r Rules) record(d diagnosis, o Outcome, otherwise string) *holdfast.Failure {
	text := otherwise
	if o.Err != nil {
		text = textOf(o.Err)
	}
	detail := Scrub(text)
	f := &holdfast.Failure{
		Code:        d.code.Name,
		Category:    d.code.Category,
		Message:     d.code.Message,
		Context:     scrubFacts(merge(d.marks.context, d.class.Context)),
		Dependency:  r.dependency(d),
		Fingerprint: guardedFingerprint(d.code.Name, o, detail),
		Benign:      d.marks.benign || d.code.Benign,
	}
	if f.Benign && !r.Policy.groupsBenign(d.code.Name) {
		f.Fingerprint = "" // in no error group
	}
	if o.Stack != "" {
		detail = cut(detail+"\n\n"+Scrub(o.Stack), maxDetail)
	}
	f.Detail = detail
	return f
}

// Summary returns the error text at the beginning of a record's detail as one line, without the stack that may follow it.
// Like the detail it contains no secrets.
func Summary(detail string) string {
	text, _, _ := strings.Cut(strings.TrimSpace(detail), "\n\n")
	return line(text, maxWhy)
}

// dependency returns the dependency for the record: the one that the handler named, else the rule's, else the kind's if the code
// blames a dependency or is a timeout.
func (r Rules) dependency(d diagnosis) string {
	name := d.marks.dependency
	if name == "" {
		name = d.class.Dependency
	}
	if name == "" && (d.code.Blame == BlameDependency || d.code.Category == "timeout") {
		name = r.Dependency
	}
	return line(name, check.MaxName)
}

func guardedFingerprint(code string, o Outcome, text string) (print string) {
	defer func() {
		if recover() != nil { // an Unwrap method of the error panicked
			print = fingerprint(code, nil, text, o.Stack)
		}
	}()
	return fingerprint(code, o.Err, text, o.Stack)
}

// scrubFacts removes secrets from facts and limits them. If there are too many, the last by name are dropped, so that the result
// does not depend on map order.
func scrubFacts(facts map[string]string) map[string]string {
	if len(facts) == 0 {
		return nil
	}
	kept := make(map[string]string, min(len(facts), maxContext))
	for _, key := range slices.Sorted(maps.Keys(facts)) {
		if len(kept) == maxContext {
			break
		}
		value := line(Scrub(facts[key]), maxContextValue)
		if SecretName(key) {
			value = hidden
		}
		if key = line(key, maxContextKey); key != "" {
			kept[key] = value
		}
	}
	return kept
}

// merge returns first and those entries of second that first lacks.
func merge(first, second map[string]string) map[string]string {
	all := maps.Clone(second)
	if all == nil {
		all = make(map[string]string, len(first))
	}
	maps.Copy(all, first)
	return all
}

var blanksOnly = strings.NewReplacer("\n", " ", "\t", " ")

// line turns a text into one clean line of limited length.
func line(text string, limit int) string {
	return cut(strings.TrimSpace(blanksOnly.Replace(clean(cut(text, maxRaw)))), limit)
}

// span formats a duration for people: 10s, 1m30s, 250ms.
func span(d time.Duration) string {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
