package api

import (
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// fullSettlement is a settlement with every field set.
func fullSettlement() Settlement {
	return Settlement{
		Batch: holdfast.NewID(), Job: holdfast.NewID(), Token: 3, To: holdfast.Queued, Delay: time.Second, Charge: store.ChargeFailure, Limit: 5, StartWithin: time.Minute, Version: "v1 \"ü\"", Queue: "mails \"ü\"",
		Took: 1500 * time.Nanosecond, Result: []byte(`{"a":1}`), Failure: &holdfast.Failure{Code: "C", Category: "input", Message: "m", Context: map[string]string{"a": "b"}}, Why: "so\n", Confirm: true, Enqueue: []holdfast.Draft{{ID: holdfast.NewID(), Kind: "next", Queue: "q", Args: []byte(`{"a":1}`)}, {Kind: "next"}},
	}
}

func TestTheSettlementCodecAgreesWithTheLibrary(t *testing.T) {
	whole := reflect.ValueOf(fullSettlement())
	all := []Settlement{{}, fullSettlement()}
	for i := range whole.NumField() {
		if whole.Field(i).IsZero() {
			t.Fatalf("the test has nothing to say for %s", whole.Type().Field(i).Name)
		}
		one := Settlement{Batch: holdfast.NewID(), Job: holdfast.NewID()}
		reflect.ValueOf(&one).Elem().Field(i).Set(whole.Field(i))
		all = append(all, one)
	}
	for n := range len(all) + 1 {
		hand, err := Marshal(settlements{all[:n]})
		if err != nil {
			t.Fatal(err)
		}
		typed, err := json.Marshal(settlements{all[:n]}, options, lenient)
		if err != nil || n > 0 && string(hand) != string(typed) {
			t.Fatalf("by hand %s\nby type %s, %v", hand, typed, err)
		}
		var read, known settlements
		if err := Unmarshal(hand, &read); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(hand, &known, options); err != nil || !reflect.DeepEqual(read, known) || n > 0 && !reflect.DeepEqual(read.Settlements, all[:n]) {
			t.Fatalf("%s\nUnmarshal    %+v\nJSON library %+v, %v", hand, read, known, err)
		}
	}
}

func TestTheAnswersCodecAgreesWithTheLibrary(t *testing.T) {
	lost := ProblemOf(&holdfast.Error{Err: holdfast.ErrLeaseLost, Message: "gone \"ü\""})
	for _, list := range [][]*Problem{{}, {nil}, {nil, nil}, {nil, lost, nil}, {lost}} {
		hand, err := Marshal(Answers{list})
		if err != nil {
			t.Fatal(err)
		}
		typed, err := json.Marshal(struct {
			Answers []*Problem `json:"answers"`
		}{list}, options, lenient)
		if err != nil || string(hand) != string(typed) {
			t.Fatalf("by hand %s\nby type %s, %v", hand, typed, err)
		}
		var read Answers
		if err := UnmarshalLoose(hand, &read); err != nil || !reflect.DeepEqual(read.Answers, list) {
			t.Fatalf("%s became %+v, %v", hand, read, err)
		}
	}
}
