// Package engine runs jobs: it claims them, lets their handlers work, and gives account of every attempt to the store.
//
// A lease passes four stations, one file each: claim takes it, gate refuses what must not run, run lets the handler work,
// settle writes down what became of it. Beside them stand the duties: functions on a beat that renew, watch, reclaim,
// promote, expire and wake, keep breakers, budgets, limits and promises, and take redrives further. The engine decides nothing
// about failure: that is failure.Decide, and settle is its only caller; nor about a circuit: that is package breaker.
//
// What holds jobs back lives in the store, as holds, and acts there, at the claim. All processes that share a store decide on it by
// compare-and-set, so each change is made once and by one of them, and none of them is needed for it.
package engine
