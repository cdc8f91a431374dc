package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
)

// Namespace is the namespace of the records in which workers publish their codes and policies: one record for each program, named by
// a hash of its content.
const Namespace = "code"

const (
	refreshAfter = 24 * time.Hour      // a running worker writes its record again after this time, so that KeptAt shows when it was last in use
	forgetAfter  = 30 * 24 * time.Hour // a record that was not written for this long is deleted once others define all its codes
	mostCodes    = 10_000              // in one publication
)

// A Publication is the body of a record: the codes of a program that are not built in, and its policies in Go.
type Publication struct {
	Version string            `json:"version,omitempty"` // of the application that published them first
	Since   time.Time         `json:"since,omitzero"`    // when that was; zero until the record is written a second time
	Codes   []failure.Code    `json:"codes"`
	InGo    policy.GoSettings `json:"policies,omitzero"`
}

// Name returns the record name under which a program's codes and policies are published; empty if it has neither.
func Name(t *failure.Taxonomy, inGo policy.GoSettings) string {
	own := t.Own()
	if len(own) == 0 && inGo.IsZero() {
		return ""
	}
	text, _ := json.Marshal(own) // texts, numbers and booleans always marshal
	if !inGo.IsZero() {
		more, _ := json.Marshal(inGo)
		text = append(text, more...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// Publish returns the records to write so that a program is published: none if a record with the same content was written
// within a day. It also deletes records that workers stopped using long ago, if others define all of their codes.
func Publish(t *failure.Taxonomy, inGo policy.GoSettings, version string, records []store.Record) []store.Record {
	name := Name(t, inGo)
	if name == "" {
		return nil
	}
	next := store.Record{Namespace: Namespace, Name: name}
	body := Publication{Version: version, Codes: t.Own(), InGo: inGo}
	for _, r := range records {
		if r.Name != name {
			continue
		}
		var was Publication
		sound := json.Unmarshal(r.Body, &was) == nil && len(was.Codes) == len(body.Codes)
		if sound && r.AsOf.Sub(r.KeptAt) < refreshAfter {
			return nil
		}
		next.Version = r.Version
		if sound {
			body.Version = was.Version
		}
		if body.Since = was.Since; body.Since.IsZero() {
			body.Since = r.KeptAt
		}
	}
	next.Body, _ = json.Marshal(body)
	return append(obsolete(records, body.Codes), next)
}

// obsolete returns deletions of records that were not written for long and whose codes are all defined elsewhere.
func obsolete(records []store.Record, now []failure.Code) (gone []store.Record) {
	elsewhere := map[string]int{}
	for _, code := range now {
		elsewhere[code.Name]++
	}
	codes := make([][]failure.Code, len(records))
	for i, r := range records {
		var p Publication
		if json.Unmarshal(r.Body, &p) == nil {
			codes[i] = p.Codes
		}
		for _, code := range codes[i] {
			elsewhere[code.Name]++
		}
	}
	for i, r := range records {
		alone := slices.ContainsFunc(codes[i], func(c failure.Code) bool { return elsewhere[c.Name] < 2 })
		if alone || r.AsOf.Sub(r.KeptAt) < forgetAfter {
			continue
		}
		for _, code := range codes[i] {
			elsewhere[code.Name]--
		}
		r.Body = nil
		gone = append(gone, r)
	}
	return gone
}

// An Application is a program that works on a kind, as its workers published it.
type Application struct {
	InGo     policy.GoSettings
	Versions []string
	Workers  int       // live workers that work on the kind; 0: none any more. In results of Live: all its live workers
	SeenAt   time.Time // when one of its workers last ran; exact to a day
}

// Applications returns the programs that work on a kind: those with live workers, the one with the most first. If no live
// worker works on it, it returns those that published a policy for the kind, the last seen first.
func Applications(records []store.Record, workers []store.WorkerInfo, kind string) (found []Application) {
	for _, u := range append(published(records, workers), storedPublication{name: ""}) { // workers that published nothing have no policies in Go
		p := Application{InGo: u.InGo, Versions: u.versions, SeenAt: u.seen}
		for _, w := range workers {
			if w.Codes == u.name && slices.Contains(w.Kinds, kind) {
				p.Workers++
			}
		}
		if _, says := u.InGo.Kinds[kind]; p.Workers > 0 || says {
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b Application) int {
		return cmp.Or(cmp.Compare(b.Workers, a.Workers), b.SeenAt.Compare(a.SeenAt))
	})
	if len(found) > 0 && found[0].Workers > 0 {
		found = slices.DeleteFunc(found, func(p Application) bool { return p.Workers == 0 })
	}
	return found
}

// Live returns the programs with live workers that have policies in Go, whatever they work on.
func Live(records []store.Record, workers []store.WorkerInfo) (found []Application) {
	for _, u := range published(records, workers) {
		if u.live && !u.InGo.IsZero() {
			count := 0
			for _, w := range workers {
				if w.Codes == u.name {
					count++
				}
			}
			found = append(found, Application{u.InGo, u.versions, count, u.seen})
		}
	}
	return found
}

// storedPublication is a publication as it was found in the store.
type storedPublication struct {
	Publication
	name     string // of the record
	versions []string
	live     bool
	seen     time.Time
}

// published returns what is published, in ascending order of precedence.
func published(records []store.Record, workers []store.WorkerInfo) []storedPublication {
	var all []storedPublication
	for _, r := range records {
		u := storedPublication{name: r.Name, seen: r.KeptAt}
		if json.Unmarshal(r.Body, &u.Publication) != nil || len(u.Codes) > mostCodes {
			continue
		}
		if u.Since.IsZero() {
			u.Since = r.KeptAt
		}
		for _, w := range workers {
			if w.Codes != r.Name {
				continue
			}
			u.live = true
			if w.SeenAt.After(u.seen) {
				u.seen = w.SeenAt
			}
			if w.Version != "" {
				u.versions = append(u.versions, w.Version)
			}
		}
		if len(u.versions) == 0 && u.Version != "" {
			u.versions = []string{u.Version}
		}
		u.versions = distinct(u.versions, nil)
		all = append(all, u)
	}
	slices.SortStableFunc(all, func(a, b storedPublication) int {
		if a.live != b.live {
			return map[bool]int{true: 1, false: -1}[a.live]
		}
		return cmp.Or(a.Since.Compare(b.Since), a.seen.Compare(b.seen))
	})
	return all
}
