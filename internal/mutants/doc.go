// Package mutants asks whether the tests would notice. Its list holds small faults: each leaves out one rule that the
// promises rest on, or is one that locks on Redis and cron jobs are known to have. A mutant is killed when the test that
// it names fails on it by assertion. One that survives, that does not build or whose test does not end is a failure: of the
// tests, or of the list.
//
// A mutant is a replacement of text that occurs once in one file, and is laid over the source by go test -overlay: nothing
// is copied, and the tree is not touched. Where a file has changed so that the text is gone, the mutant is to be written
// anew, or dropped with the rule.
//
//	go test ./internal/mutants                                         that all apply and build, and the quick ones
//	make mutants                                                       all of them
//	go test -v ./internal/mutants -run TestMutants -mutants.run NAME   some of them
package mutants
