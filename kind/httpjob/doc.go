// Package httpjob is the kind "http": a job that makes an HTTP request, without a handler in Go.
//
//	{"kind": "http", "args": {"method": "POST", "url": "https://api.example.org/orders", "json": {"id": 7},
//	  "headers": {"Authorization": "Bearer ${secret:shop}"}, "keep_headers": ["ETag"], "timeout": "20s", "expect": [200, "201-204", 409]}}
//
// The response is the job's result. An unexpected status, or no response, is a failure: its status and Retry-After decide, together with the policy, whether and when
// it is retried. A response 429 or 503 with Retry-After is a throttle: the job waits that long and no attempt is spent, unless the policy says "throttle: attempt". The
// job's id is sent as Idempotency-Key, the same at every attempt, and the trace of its enqueuer as traceparent.
//
// Only public addresses may be called (package safehttp), unless the Config allows more.
//
// # Hosts are dependencies
//
// A job's dependency is the host of its address (with the port, unless it is the default one), or the name to which Config.Dependencies maps it. A draft that names
// another dependency is refused. After an edit or a redrive has changed the address, calls count for the host that is called. So each host has a breaker and a retry
// budget of its own, and is limited like any dependency: by a hold, or for all of them by a policy. A request that ends at its own timeout, when this is less than a
// tenth of the default, does not count for the breaker.
//
//	dependencies:
//	  "*": {limit: {at_most: 8}}                                    # of any host, 8 calls at once
//	  api.example.org: {limit: {at_most: 4, per_second: 10}}        # of this one, fewer
//
// # Secrets
//
// ${secret:NAME} in the value of a header or in the query stands for a secret. It is looked up when the request is made, and is in no draft, result, error, log or
// story. A user who may enqueue jobs chooses the address, so a secret is sent only to the hosts that its operator has listed:
//
//	HOLDFAST_SECRET_SHOP=...            or HOLDFAST_SECRET_SHOP_FILE=/run/secrets/shop
//	HOLDFAST_SECRET_SHOP_HOSTS=api.example.org,eu.api.example.org:8443
package httpjob
