// Package policy reads policies as data: a YAML file in which an operator says how often to try, whom to spare, what to limit
// and when to keep quiet, without a deployment. [Parse] accepts a file whole or not at all and names every mistake with its
// line. [Simulate] shows what a policy would do to one job, [WhatIf] what it would have done to those of the past. Both ask
// failure.Decide; there is no second opinion on what a failure means.
//
// # Order of precedence
//
// For each setting the first of these sources that gives it applies:
//
//  1. the job
//  2. owners of the file: the owner's name, then patterns, the longest first
//  3. kinds of the file, likewise
//  4. the kind's policy in Go
//  5. codes of the file
//  6. defaults of the file
//  7. the engine's policy in Go
//  8. built in
//
// Within an entry, and within a policy in Go, what is said about a code goes before what is said in general. So with
//
//	defaults: {max_attempts: 5}
//	codes: {RATE_LIMITED: {max_attempts: 10}}
//	kinds: {convert: {max_attempts: 4}}
//
// a job of kind convert is tried 4 times, whatever the code, and any other 5 times, or 10 when it was rate limited. To keep
// the ten, say so within the kind: kinds: {convert: {max_attempts: 4, codes: {RATE_LIMITED: {max_attempts: 10}}}}.
// [Set.Explain] shows the source of each setting.
//
// Deliveries of subscriptions, whose kinds begin with "holdfast.", have plans of their own. Codes and defaults do not reach them, and of the entries of
// kinds and owners only those whose names begin with "holdfast." and "subscription/".
//
// A name that ends in * stands for every name that begins so. Limits and windows are not looked up in this order: they are holds, and all that cover a
// job must let it through.
package policy
