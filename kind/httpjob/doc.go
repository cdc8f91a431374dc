// Package httpjob is the kind "http": a job that calls an address, for which nobody writes a handler.
//
//	{"kind": "http", "args": {"method": "POST", "url": "https://api.example.org/orders", "json": {"id": 7},
//	  "headers": {"Authorization": "Bearer ${secret:shop}"}, "keep_headers": ["ETag"], "timeout": "20s", "expect": [200, "201-204", 409]}}
//
// The answer is the job's result. A status that was not expected, and a call without an answer, is a failure like any other: its status and
// Retry-After decide, with the policy, whether and when it is tried again. An answer 429 or 503 with a Retry-After is a throttle: the job waits as
// long and no attempt is spent, unless the policy says "throttle: attempt". The job's id goes out as Idempotency-Key, the same at every attempt,
// and whoever enqueued the job is named by traceparent.
//
// Only public addresses are called (package safehttp), unless the Config allows more.
//
// # Hosts are dependencies
//
// A job's dependency is the host of its address (with a port that is not the usual one), or the name to which Config.Dependencies maps it. A draft that names another
// is refused, and whatever an edit or a redrive makes of the address, the host that is called is the one whose breaker hears of it. So each host has a breaker and a
// budget for retries of its own, and is limited like any dependency: by a hold, or for all of them by a policy. A call that its own timeout cuts in less than a tenth of the
// usual time says nothing about the host.
//
//	dependencies:
//	  "*": {limit: {at_most: 8}}                                    # of any host, 8 calls at once
//	  api.example.org: {limit: {at_most: 4, per_second: 10}}        # of this one, fewer
//
// # Secrets
//
// ${secret:NAME} in the value of a header or in the query stands for a secret. It is looked up when the call is made and is in no draft, result,
// error, log or story. Whoever may enqueue chooses the address, so a secret is sent only to hosts that whoever set it named:
//
//	HOLDFAST_SECRET_SHOP=...            or HOLDFAST_SECRET_SHOP_FILE=/run/secrets/shop
//	HOLDFAST_SECRET_SHOP_HOSTS=api.example.org,eu.api.example.org:8443
package httpjob
