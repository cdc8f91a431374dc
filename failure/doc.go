// Package failure decides what happens to a job when an attempt ends. No other package makes that decision.
//
// [Decide] takes an [Outcome], which describes how the attempt ended, and returns a [Verdict]: the job is complete, is
// queued again after a delay, or has failed for good, with the reason in one sentence. Decide gives an error a [Code] of
// the [Taxonomy]: first by the marks that the handler put on it, then by a chain of [Rule] values, then by [DefaultRule].
// It also makes a record of the failure that contains no secrets and is safe to store and show.
//
// Handlers use the functions that mark errors:
//
//	resp, err := client.Do(req)
//	if err != nil {
//		return failure.On(err, "gateway") // the dependency that failed
//	}
//	if resp.StatusCode >= 400 {
//		return failure.NewHTTPError(resp.StatusCode, resp.Header, nil) // classified by its status
//	}
//	if !valid(body) {
//		return failure.NeverRetry(failure.WithCode(errBody, "INVALID_INPUT")) // fails for good, with this code
//	}
//	if notReady {
//		return failure.Snooze(time.Minute) // run again later, at no cost
//	}
//
// A [Policy] says how often and how long to retry; package failure/policy reads policies from a file.
//
// All functions are pure: they read no clock, do no I/O, start no goroutine and use no random numbers. Age and chance are
// fields of the outcome, so the same outcome always gets the same verdict. All functions are safe for concurrent use.
package failure
