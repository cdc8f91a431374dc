package holdfasttest_test

import (
	"fmt"
	"runtime"
	"testing"
)

// A recorder takes the place of a test that is expected to fail.
type recorder struct {
	testing.TB
	failed bool
	text   string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed, r.text = true, r.text+fmt.Sprintf(format, args...)+"\n"
}

func (r *recorder) Fatal(args ...any) {
	r.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
