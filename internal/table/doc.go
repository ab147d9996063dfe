// Package table measures which promise survives what, by store and fault: a row for each, with counts and times.
//
// For each row a store of its own kind is started, and three replicas on it, each a process: an elector and a scheduler
// with an every-second job that writes a line when it runs (CatchUpAll, InterruptRerun). The fault strikes a few times, and
// each time the group may settle: until somebody leads and the last due tick has run. Then it is judged:
//
//   - two valid leaders: each replica asks Valid of each of its terms every millisecond and notes, in a file that outlives
//     it, the time by CLOCK_MONOTONIC after the first question and before the last one that were answered true. Valid
//     answers true once and for all until it is false, so that it was true all the time between. Two such times that
//     overlap are two leaders, with no doubt; an overlap of less than a millisecond may be missed. A replica that is frozen
//     asks nothing: it counts up to its last question before that.
//   - tokens: those of all terms, in the order in which the terms began, grow.
//   - ticks: package tally counts the job's lines against the schedule and the history.
//   - without a leader: the longest time, from a stroke of the fault until the group has settled, that no term was valid.
//   - forgotten: where a fault counts it, how many leases and claims that the replicas had been granted were not in what was
//     left of the store; and ticks that no history tells of.
//
// A row whose fault leaves the store what it has acknowledged must show neither two leaders, nor a token twice, nor a tick
// lost or doubled: its test fails otherwise. What the others show is only reported.
//
// A module that has stores calls [Obey] in a TestMain and [Run] in a test, with its kinds:
//
//	go test ./internal/table -run TestTable -count=1 -v -table.on all -table.times 5 -parallel 5 -timeout 6h
package table
