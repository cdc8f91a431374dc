// Package policy reads policies as data: a YAML file in which an operator says how often to try, whom to spare, what to limit
// and when to keep quiet, without a deployment. [Parse] accepts a file whole or not at all and names every mistake with its
// line. [Simulate] shows what a policy would do to one job, [WhatIf] what it would have done to those of the past. Both ask
// failure.Decide; there is no second opinion on what a failure means.
//
// # Who has the last word
//
// The nearest word wins. What the owner's entry says goes before what the kind's entry says, that before codes, and that
// before defaults. Within one entry, what it says about a code goes before what it says in general. So with
//
//	defaults: {max_attempts: 5}
//	codes: {RATE_LIMITED: {max_attempts: 10}}
//	kinds: {convert: {max_attempts: 4}}
//
// a job of kind convert is tried 4 times, whatever the code, and any other 5 times, or 10 when it was rate limited. To keep
// the ten, say so within the kind: kinds: {convert: {max_attempts: 4, codes: {RATE_LIMITED: {max_attempts: 10}}}}.
//
// A name that ends in * stands for every name that begins so. What a name's own entry leaves open, the longest pattern says,
// then the next longest. Only limits and windows are not replaced so: they are holds, and all that cover a job must let it
// through.
package policy
