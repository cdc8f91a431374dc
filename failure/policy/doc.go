// Package policy reads policies from a YAML file, so that an operator can change retries, limits, retry budgets, breakers
// and time windows without a deployment. [Parse] accepts a file completely or not at all and names every mistake with its
// line. [Simulate] shows what a policy does to one job, and [WhatIf] what it would have done to recorded jobs. Both call
// failure.Decide, so their verdicts are those of a worker.
//
//	set, err := policy.Parse(text) // err names every mistake with its line
//	p := set.For("convert", "acme") // a failure.Policy
//
// # Order of precedence
//
// For each setting the first of these sources that gives it applies:
//
//  1. the job
//  2. owners in the file: the owner's name, then patterns, the longest first
//  3. kinds in the file, likewise
//  4. the kind's policy in Go
//  5. codes in the file
//  6. defaults in the file
//  7. the engine's policy in Go
//  8. built in
//
// Within an entry, and within a policy in Go, a value for a code takes precedence over a general value. So with
//
//	defaults: {max_attempts: 5}
//	codes: {RATE_LIMITED: {max_attempts: 10}}
//	kinds: {convert: {max_attempts: 4}}
//
// a job of kind convert has 4 attempts, whatever the code, and any other job has 5, or 10 when it was rate limited. To give
// convert 10 as well, set it within the kind: kinds: {convert: {max_attempts: 4, codes: {RATE_LIMITED: {max_attempts:
// 10}}}}. [Set.Explain] shows the source of each setting.
//
// Deliveries of subscriptions, whose kinds begin with "holdfast.", are not affected by codes and defaults, and of the
// entries of kinds and owners only by those whose names begin with "holdfast." and "subscription/".
//
// A name that ends in * is a prefix pattern. Limits and windows do not follow this order: they are holds, and a job runs
// only if all holds that cover it let it through.
package policy
