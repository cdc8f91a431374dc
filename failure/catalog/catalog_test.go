package catalog

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func code(name, message string) failure.Code {
	return failure.Code{Name: name, Category: "input", Blame: failure.BlameUser, HTTPStatus: 422, Message: message, Remedy: "Ask the sender."}
}

func taxonomy(t *testing.T, codes ...failure.Code) *failure.Taxonomy {
	t.Helper()
	known, err := failure.NewTaxonomy(codes...)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// kept is what a store would answer after a publication.
func kept(t *testing.T, before []store.Record, change []store.Record, at time.Time) []store.Record {
	t.Helper()
	after := slices.Clone(before)
	for _, r := range change {
		i := slices.IndexFunc(after, func(o store.Record) bool { return o.Name == r.Name })
		switch {
		case r.Body == nil:
			after = slices.Delete(after, i, i+1)
			continue
		case i < 0:
			after, i = append(after, r), len(after)
		}
		r.Version, r.KeptAt = r.Version+1, at
		after[i] = r
	}
	for i := range after {
		after[i].AsOf = at
	}
	return after
}

func entry(t *testing.T, c *Catalog, name string) Entry {
	t.Helper()
	for _, e := range c.Entries() {
		if e.Code.Name == name {
			return e
		}
	}
	t.Fatalf("%s is not in the catalog", name)
	return Entry{}
}

func TestATaxonomyIsPublishedOnceAndRefreshedOnceADay(t *testing.T) {
	own := taxonomy(t, code("MAILBOX_UNKNOWN", "No such mailbox."))
	if got := Publish(taxonomy(t), policy.GoSettings{}, "v1", nil); got != nil {
		t.Errorf("a taxonomy without codes of its own is published: %v", got)
	}
	records := kept(t, nil, Publish(own, policy.GoSettings{}, "v1", nil), noon)
	if len(records) != 1 || records[0].Name != Name(own, policy.GoSettings{}) || records[0].Namespace != Namespace {
		t.Fatalf("%+v", records)
	}
	if again := Publish(own, policy.GoSettings{}, "v2", kept(t, records, nil, noon.Add(23*time.Hour))); again != nil {
		t.Errorf("it is published again within a day: %v", again)
	}
	later := noon.Add(25 * time.Hour)
	records = kept(t, records, Publish(own, policy.GoSettings{}, "v2", kept(t, records, nil, later)), later)
	if len(records) != 1 || records[0].Version != 2 {
		t.Fatalf("%+v", records)
	}
	e := entry(t, Read(records, nil), "MAILBOX_UNKNOWN")
	if !e.PublishedAt.Equal(noon) || !e.SeenAt.Equal(later) || e.Live || !slices.Equal(e.Versions, []string{"v1"}) || e.Source != Worker {
		t.Errorf("%+v", e)
	}
}

func TestOfTwoDefinitionsALiveWorkersAppliesThenTheNewerAndBothAreListed(t *testing.T) {
	first, second := taxonomy(t, code("MAILBOX_UNKNOWN", "first")), taxonomy(t, code("MAILBOX_UNKNOWN", "second"))
	records := kept(t, nil, Publish(first, policy.GoSettings{}, "v1", nil), noon)
	records = kept(t, records, Publish(second, policy.GoSettings{}, "v2", records), noon.Add(time.Hour))
	one := store.WorkerInfo{Worker: "a", Version: "v1", Codes: Name(first, policy.GoSettings{})}
	two := store.WorkerInfo{Worker: "b", Version: "v2", Codes: Name(second, policy.GoSettings{})}
	for _, c := range []struct {
		live []store.WorkerInfo
		want string
	}{
		{nil, "second"}, {[]store.WorkerInfo{one}, "first"}, {[]store.WorkerInfo{one, two}, "second"}, {[]store.WorkerInfo{two}, "second"},
	} {
		e := entry(t, Read(records, c.live), "MAILBOX_UNKNOWN")
		if e.Code.Message != c.want || len(e.Others) != 1 || e.Live != (len(c.live) > 0) {
			t.Errorf("with %d live workers: %+v", len(c.live), e)
		}
	}
}

func TestTheOrderOfSourcesIsBuiltInWorkerProgramPolicy(t *testing.T) {
	c := Read(kept(t, nil, Publish(taxonomy(t, code("NOT_FOUND", "worker")), policy.GoSettings{}, "v1", nil), noon), nil)
	if e := entry(t, c, "NOT_FOUND"); e.Code.Message != "worker" || e.Others[0].Source != BuiltIn {
		t.Errorf("%+v", e)
	}
	c.Add(Program, []failure.Code{code("NOT_FOUND", "program")})
	c.Add(Policy, []failure.Code{code("NOT_FOUND", "policy")})
	if e := entry(t, c, "NOT_FOUND"); e.Code.Message != "policy" || len(e.Others) != 3 || e.Others[0].Source != Program {
		t.Errorf("%+v", e)
	}
	if known, _ := c.Taxonomy().Code("NOT_FOUND"); known.Message != "policy" {
		t.Errorf("%+v", known)
	}
}

func TestWhatOthersPublishNeverChangesACodeThatAProgramKnows(t *testing.T) {
	c := Read(kept(t, nil, Publish(taxonomy(t, code("NOT_FOUND", "theirs"), code("OURS", "theirs"), code("THEIRS", "theirs")), policy.GoSettings{}, "v1", nil), noon), nil)
	beside := c.With(taxonomy(t, code("OURS", "ours")))
	for name, want := range map[string]string{"OURS": "ours", "THEIRS": "theirs", "NOT_FOUND": "A resource that the job needs does not exist."} {
		if known, _ := beside.Code(name); known.Message != want {
			t.Errorf("%s: %+v", name, known)
		}
	}
	if known, _ := c.With(nil).Code("NOT_FOUND"); known.Message == "theirs" {
		t.Error("a program without a taxonomy took over another meaning of a built-in code")
	}
}

func TestAPublicationOutOfUseIsForgottenOnlyWhenOthersDefineItsCodes(t *testing.T) {
	old := taxonomy(t, code("KEPT", "old"), code("SHARED", "old"))
	older := taxonomy(t, code("SHARED", "older"))
	records := kept(t, nil, Publish(older, policy.GoSettings{}, "v0", nil), noon)
	records = kept(t, records, Publish(old, policy.GoSettings{}, "v1", records), noon)
	later := noon.Add(60 * 24 * time.Hour)
	records = kept(t, records, nil, later)
	records = kept(t, records, Publish(taxonomy(t, code("SHARED", "new")), policy.GoSettings{}, "v2", records), later)
	var names []string
	for _, r := range records {
		names = append(names, r.Name)
	}
	if len(records) != 2 || slices.Contains(names, Name(older, policy.GoSettings{})) {
		t.Errorf("%v", names)
	}
	if e := entry(t, Read(records, nil), "KEPT"); e.Live || e.Code.Message != "old" {
		t.Errorf("%+v", e)
	}
}

func TestAPublicationThatCannotBeReadIsLeftOut(t *testing.T) {
	bad, _ := json.Marshal(Publication{Codes: []failure.Code{code("GOOD", "fine"), code("bad name", "x"), {Name: "EMPTY"}, code("LINES", "one\ntwo")}})
	c := Read([]store.Record{{Namespace: Namespace, Name: "x", Body: bad}, {Namespace: Namespace, Name: "y", Body: json.RawMessage(`[]`)}}, nil)
	var builtin *failure.Taxonomy
	if n := len(c.Entries()); n != len(builtin.Codes())+1 {
		t.Errorf("%d entries", n)
	}
	entry(t, c, "GOOD")
}

func TestTheProgramsOfAKindAreThoseWithLiveWorkersOrElseThoseThatPublishedLast(t *testing.T) {
	old := policy.GoSettings{Kinds: map[string]policy.Described{"mail": policy.Describe(failure.Policy{MaxAttempts: 4})}}
	now := policy.GoSettings{Engine: policy.Describe(failure.Policy{MaxAttempts: 9})}
	records := kept(t, nil, Publish(nil, old, "v1", nil), noon)
	records = kept(t, records, Publish(nil, now, "v2", records), noon.Add(time.Hour))
	if len(records) != 2 || Publish(nil, now, "v2", records) != nil || Publish(nil, policy.GoSettings{}, "v3", records) != nil {
		t.Fatalf("published: %v", records)
	}
	if got := Applications(records, nil, "mail"); len(got) != 1 || got[0].Workers != 0 || got[0].InGo.Kinds["mail"].Settings["max_attempts"] != "4" {
		t.Errorf("without live workers: %+v", got)
	}
	workers := []store.WorkerInfo{
		{Worker: "a", Kinds: []string{"mail"}, Codes: Name(nil, now), Version: "v2"}, {Worker: "b", Kinds: []string{"mail", "fax"}, Codes: Name(nil, now), Version: "v2"},
		{Worker: "c", Kinds: []string{"mail"}},
	}
	got := Applications(records, workers, "mail")
	if len(got) != 2 || got[0].Workers != 2 || got[0].InGo.Engine.Settings["max_attempts"] != "9" || got[1].Workers != 1 || !got[1].InGo.IsZero() {
		t.Errorf("with live workers: %+v", got)
	}
	if got := Applications(records, workers, "other"); got != nil {
		t.Errorf("a kind that nothing works on: %+v", got)
	}
}
