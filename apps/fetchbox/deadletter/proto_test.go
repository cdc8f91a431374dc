package deadletter_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter/pb"
)

// Consumers in other languages have the .proto file, so the generated code must be that of the file: `make proto` generates it.
func TestTheGeneratedCodeHasTheFieldsOfTheProtoFile(t *testing.T) {
	text, err := os.ReadFile("pb/deadletter.proto")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, field := range regexp.MustCompile(`(?m)^  (\w+)(?:<\w+, \w+>)? (\w+) = (\d+);`).FindAllStringSubmatch(string(text), -1) {
		want = append(want, field[1]+" "+field[2]+" = "+field[3])
	}
	fields := (&pb.DeadLetterTask{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		kind := field.Kind().String()
		if field.IsMap() {
			kind = "map"
		}
		got = append(got, kind+" "+string(field.Name())+" = "+strconv.Itoa(int(field.Number())))
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the code has %q, deadletter.proto has %q: run make proto", got, want)
	}
}
