// Package storetest is the contract of package store as a test suite that every store runs, and a store that breaks on
// command.
//
// Run checks each rule of the contract as a subtest that is named as a sentence. Faulty wraps any store and loses, delays
// or duplicates its calls, scripted or by a seed; the suite runs each fault on each method through it, and tests of
// elections and schedulers use it too.
//
// The suite takes real time only where a lease or a session has to end, some tenths of a second in all. It never assumes
// that a call is fast: what must not end meanwhile lasts a minute.
package storetest
