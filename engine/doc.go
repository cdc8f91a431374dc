// Package engine runs jobs: it claims them, lets their handlers work, and gives account of every attempt to the store.
//
// A lease passes four stations, one file each: claim takes it, gate refuses what must not run, run lets the handler work,
// settle writes down what became of it. Beside them stand the duties: functions on a beat that renew, watch, reclaim,
// promote, expire and wake. The engine decides nothing about failure: that is failure.Decide, and settle is its only caller.
package engine
