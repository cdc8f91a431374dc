package worker

import (
	"reflect"
	"slices"
	"testing"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/notify"
)

// ofTheEngine are the fields of engine.Config that say nothing about the engine of the notifier, and why.
var ofTheEngine = map[string][]string{
	"deliveries have a queue, slots and time limits of their own": {"Queues", "Slots", "QueueSlots", "OwnerSlots", "Prefetch", "Timeout", "AbandonAfter"},
	"notifiers leave these duties to engines": {"Retention", "RetentionWarning", "KeepFeed", "KeepStories", "KeepCounts", "KeepTombstones", "DeleteArtifact",
		"OnDeadlineMissed"},
	"they run once, beside the engine":     {"Duties"},
	"it wraps handlers of the application": {"Middleware"},
	"notify.Config has one":                {"Log"},
}

// The engine of the notifier performs duties for all jobs. Who adds a field to engine.Config decides here whether it applies to both.
func TestTheNotifierIsConfiguredLikeTheEngine(t *testing.T) {
	var engineConfig engine.Config
	fill(t, reflect.ValueOf(&engineConfig).Elem())
	w := &Worker{cfg: Config{Engine: engineConfig, Notify: notify.Config{}}}
	got := w.notifyConfig()
	if got.Log != engineConfig.Log {
		t.Error("the notifier has another log")
	}
	given := reflect.ValueOf(got.Engine)
	for i := range given.NumField() {
		name := given.Type().Field(i).Name
		apart := false
		for _, names := range ofTheEngine {
			apart = apart || slices.Contains(names, name)
		}
		if given.Field(i).IsZero() != apart {
			t.Errorf("engine.Config.%s: the notifier has it is %v: pass it in notifyConfig, or add it to ofTheEngine", name, apart)
		}
	}
}

// fill gives every field a value that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		field := v.Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Int, reflect.Int64:
			field.SetInt(1)
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		case reflect.Map:
			field.Set(reflect.MakeMap(field.Type()))
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case reflect.Func:
			field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { panic("not called") }))
		case reflect.Struct: // a failure.Policy
			field.Field(0).SetInt(1)
		default:
			t.Fatalf("%s is of kind %s", v.Type().Field(i).Name, field.Kind())
		}
	}
}

func TestNamesGiveDifferentIDs(t *testing.T) {
	if a, b := idFrom("a"), idFrom("b"); a == b || a.IsZero() || idFrom("a") != a {
		t.Errorf("%v %v", a, b)
	}
}
