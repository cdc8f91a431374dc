package work

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// F9, 002 section 5: retry policy evaluation: given an error code, the classification and the decision are correct.
func TestRetryPolicyEvaluation(t *testing.T) {
	rules := failure.Rules{Taxonomy: code.Taxonomy(), Classify: code.Classify, Policy: Limits{Base: 10 * time.Millisecond, Crashes: 3}.policy()}
	for _, c := range code.All() {
		stage := code.Stage(c.Name)
		if final := stage == "VALIDATION_" || stage == "AUTH_" || stage == "HANDLER_"; final && c.Retryable {
			t.Errorf("%s is retried", c.Name)
		}
		lease := store.Lease{Job: holdfast.Job{Kind: Task{}.Kind(), State: holdfast.Processing, MaxAttempts: 6}}
		v := failure.Decide(rules, lease, failure.Outcome{Event: failure.Returned, Err: failure.WithCode(fmt.Errorf("it failed"), c.Name)})
		if retried := v.To == holdfast.Queued; retried != c.Retryable || v.Failure.Code != c.Name {
			t.Errorf("%s: %+v", c.Name, v)
		}
	}
	for name, retried := range map[string]bool{
		"DOWNLOAD_TIMEOUT": true, "DOWNLOAD_HTTP_5XX": true, "DOWNLOAD_DNS_ERROR": true, "DOWNLOAD_HTTP_408": true, "DOWNLOAD_HTTP_429": true, "DOWNLOAD_HTTP_499": true, "DOWNLOAD_PROXY_EXHAUSTED": true,
		"DOWNLOAD_HTTP_4XX": false, "DOWNLOAD_INVALID_URL": false, "UPLOAD_S3_ERROR": true, "UPLOAD_THROTTLED": true, "UPLOAD_NETWORK_ERROR": true, "UPLOAD_ACCESS_DENIED": false,
		"UPLOAD_INVALID_BUCKET": false, "SYSTEM_PANIC": false, "HANDLER_ERROR": false,
	} {
		if code.Of(name).Retryable != retried {
			t.Errorf("%s: retried %v", name, !retried)
		}
	}
}
