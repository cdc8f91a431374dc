package console_test

import (
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
)

func TestWorkersShowTheirJobs(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	s.shows("/workers", "worker-a/1", "worker-b/1", "1.3.2, 1.4.0", "2 of 6", "worker%3Aworker-b%2F1", "Jobs without a worker:", "queue%3Apictures")
}
